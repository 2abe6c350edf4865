// Watches one track, one person or the current speaker, by WHEP (docs/guide/whip.md): the others are not notified of the viewer.
import type { Api, Seat } from '../api.js';
import { Problem } from '../problem.js';

export interface WhepOptions {
  readonly api: Api;
  readonly roomId: string;
  /** What to watch; `{}` for the current speaker. */
  readonly what: { readonly peer?: string; readonly track?: string };
  /** Called with why there is no picture, and with null once there is one. */
  onProblem(problem: Problem | null): void;
}

const RETRY_MS = 2_000;
/** Time for ICE to recover by itself. */
const DISCONNECTED_MS = 5_000;

/** One viewer of a room, who comes back after a lost connection. */
export class WhepPlayer {
  /** The received media; tracks are added as they arrive. */
  readonly stream = new MediaStream();
  readonly #options: WhepOptions;
  /** The connection of the present session. */
  #connection: RTCPeerConnection | undefined;
  #seat: Seat | undefined;
  #everConnected = false;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(options: WhepOptions) {
    this.#options = options;
    this.#begin();
  }

  /** Ends the session and removes its peer. */
  close(): void {
    clearTimeout(this.#retry);
    clearTimeout(this.#silence);
    this.#connection?.close();
    this.#connection = undefined;
    for (const track of this.stream.getTracks()) this.stream.removeTrack(track);
    if (this.#seat !== undefined) this.#options.api.leaveSeat(this.#seat);
    this.#seat = undefined;
  }

  #begin(): void {
    const connection = new RTCPeerConnection();
    this.#connection = connection;
    connection.addEventListener('track', ({ track }) => this.stream.addTrack(track));
    connection.addEventListener('connectionstatechange', () => {
      if (this.#connection === connection) this.#stateChanged(connection.connectionState);
    });
    this.#open(connection).catch((error: unknown) => {
      if (this.#connection !== connection) return;
      const problem = error instanceof Problem ? error : new Problem('refused', 'No picture', String(error));
      this.#end(problem, problem.code === 'server-unreachable');
    });
  }

  /** @throws Problem */
  async #open(connection: RTCPeerConnection): Promise<void> {
    const { api, roomId, what } = this.#options;
    const permissions = { publish: false };
    const seat = await api.takeSeat(roomId, { permissions, metadata: { name: 'Dashboard' } });
    if (this.#connection !== connection) return api.leaveSeat(seat);
    this.#seat = seat;
    for (const kind of ['audio', 'video']) connection.addTransceiver(kind, { direction: 'recvonly' });
    // Without candidates: the server learns the addresses of the browser from its connectivity checks.
    await connection.setLocalDescription();
    const sdp = await api.watch(seat, what, connection.localDescription?.sdp ?? '');
    if (this.#connection === connection) await connection.setRemoteDescription({ type: 'answer', sdp });
  }

  #stateChanged(state: RTCPeerConnectionState): void {
    clearTimeout(this.#silence);
    const lost = (): void =>
      // A path that has never been there is not there the next time either.
      this.#end(
        new Problem('connection-lost', 'No picture', 'The media of the server do not arrive.'),
        this.#everConnected,
      );
    if (state === 'failed') return lost();
    if (state === 'disconnected') this.#silence = setTimeout(lost, DISCONNECTED_MS);
    if (state !== 'connected') return undefined;
    this.#everConnected = true;
    return this.#options.onProblem(null);
  }

  #end(problem: Problem, mayReturn: boolean): void {
    this.close();
    this.#options.onProblem(problem);
    if (mayReturn) this.#retry = setTimeout(() => this.#begin(), RETRY_MS);
  }
}
