import type { RelayStream, RelayStreamOptions } from '@bloom/webrtc';
import type { MediaAnswer, MediaCall } from '../room-command.js';
import type { EngineStats } from '../media-engine.js';
import type { MediaCore } from './media-core.js';
import type { MediaWorker, WorkerPort, WorkerRoom } from './media-worker.js';

/** Runs the media in the calling thread: the simplest deployment, and the reference for testing worker threads. */
export class LocalWorker implements MediaWorker {
  readonly id = 0;
  readonly alive = true;
  readonly lastStats = undefined;
  readonly rooms = new Map<number, WorkerRoom>();
  readonly #core: MediaCore;

  constructor(core: MediaCore) {
    this.#core = core;
  }

  get port(): number {
    return this.#core.port.port;
  }

  portTo(room: number): WorkerPort {
    const core = this.#core;
    return {
      post: (command) => core.post(room, command),
      give: (command) => core.post(room, command),
      call: async <C extends MediaCall>(command: C) => core.call(room, command) as MediaAnswer<C>,
      close: async () => {
        core.closeRoom(room);
        this.rooms.delete(room);
      },
    };
  }

  async open(number: number, room: WorkerRoom): Promise<void> {
    this.#core.openRoom(number, room.roomId, (report) => room.receive(report));
    this.rooms.set(number, room);
  }

  attachStream(client: RelayStreamOptions): RelayStream {
    return this.#core.port.attachStream(client);
  }

  async stats(): Promise<EngineStats> {
    return this.#core.stats();
  }

  close(): Promise<void> {
    return this.#core.close();
  }
}
