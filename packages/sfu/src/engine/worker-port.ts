import type { FeedFrameCommand, MediaAnswer, MediaCall, RoomCommand } from '../room-command.js';

/** How a room reaches its `ForwardingRoom`. Commands for a room that is closed or lost are ignored. */
export interface WorkerPort {
  post(command: RoomCommand): void;
  /** Same as `post`; the frame's memory belongs to the worker from now on. */
  give(command: FeedFrameCommand): void;
  /** Rejects with `MediaError` code `CLOSED` when the room or its worker is gone. */
  call<C extends MediaCall>(command: C): Promise<MediaAnswer<C>>;
  /** Closes the room; its last reports arrive before this resolves. Never rejects. */
  close(): Promise<void>;
}
