import type { FeedFrameCommand, MediaAnswer, MediaCall, RoomCommand } from '../room-command.js';

/** How a room reaches its `ForwardingRoom`. Commands for a closed or lost room are ignored. */
export interface WorkerPort {
  post(command: RoomCommand): void;
  /** Same as `post`, but transfers the frame's memory to the worker. */
  give(command: FeedFrameCommand): void;
  /** Rejects with `MediaError` code `CLOSED` if the room or its worker has ended. */
  call<C extends MediaCall>(command: C): Promise<MediaAnswer<C>>;
  /** Closes the room; its last reports arrive before this resolves. Never rejects. */
  close(): Promise<void>;
}
