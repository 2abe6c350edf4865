// Watches one track, one person or the current speaker, by WHEP (docs/guide/whip.md): the others are not notified of the viewer.
import type { Api, Seat } from '../api.js';

export interface WhepOptions {
  readonly api: Api;
  readonly roomId: string;
  /** What to watch; `{}` for the current speaker. */
  readonly what: { readonly peer?: string; readonly track?: string };
}

/** One viewer of a room. */
export class WhepPlayer {
  /** The received media; tracks are added as they arrive. */
  readonly stream = new MediaStream();
  readonly #options: WhepOptions;
  readonly #connection = new RTCPeerConnection();
  #seat: Seat | undefined;
  #closed = false;

  constructor(options: WhepOptions) {
    this.#options = options;
    this.#connection.addEventListener('track', ({ track }) => this.stream.addTrack(track));
  }

  /** @throws Problem */
  async open(): Promise<void> {
    const { api, roomId, what } = this.#options;
    const permissions = { publish: false };
    const seat = await api.takeSeat(roomId, { permissions, metadata: { name: 'Dashboard' } });
    this.#seat = seat;
    if (this.#closed) return this.close();
    for (const kind of ['audio', 'video']) this.#connection.addTransceiver(kind, { direction: 'recvonly' });
    // Without candidates: the server learns the addresses of the browser from its connectivity checks.
    await this.#connection.setLocalDescription();
    const sdp = await api.watch(seat, what, this.#connection.localDescription?.sdp ?? '');
    if (!this.#closed) await this.#connection.setRemoteDescription({ type: 'answer', sdp });
  }

  /** Ends the session and removes its peer. */
  close(): void {
    this.#closed = true;
    this.#connection.close();
    if (this.#seat !== undefined) this.#options.api.leaveSeat(this.#seat);
    this.#seat = undefined;
  }
}
