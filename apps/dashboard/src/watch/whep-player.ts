// Watches one track, one person or the current speaker by WHEP (docs/guide/whip.md), unnoticed by the others.
import type { BloomClient, CreatedPeer } from '@bloom/server-sdk';
import { Problem, problemOf, problemOfAnswer, serverUnreachable } from '../problem.js';

export interface WhepOptions {
  readonly api: BloomClient;
  /** Address of the API. */
  readonly base: string;
  readonly roomId: string;
  /** What to watch; `{}` for the current speaker. */
  readonly what: { readonly peer?: string; readonly track?: string };
  /** Called with the reason why there is no picture, and with null once there is one. */
  onProblem(problem: Problem | null): void;
}

const RETRY_MS = 2_000;
/** Time allowed for ICE to recover by itself. */
const DISCONNECTED_MS = 5_000;

/** One viewer of a room, who returns after a lost connection. */
export class WhepPlayer {
  /** The received media; tracks are added as they arrive. */
  readonly stream = new MediaStream();
  readonly #options: WhepOptions;
  /** The connection of the current session. */
  #connection: RTCPeerConnection | undefined;
  #seat: CreatedPeer | undefined;
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
    if (this.#seat !== undefined) this.#giveBack(this.#seat);
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
      const problem = problemOf(error, 'No picture');
      this.#end(problem, problem.code === 'server-unreachable');
    });
  }

  async #open(connection: RTCPeerConnection): Promise<void> {
    const { api, roomId } = this.#options;
    const seat = await api.addPeer(roomId, { permissions: { publish: false }, metadata: { name: 'Dashboard' } });
    if (this.#connection !== connection) return this.#giveBack(seat);
    this.#seat = seat;
    for (const kind of ['audio', 'video']) connection.addTransceiver(kind, { direction: 'recvonly' });
    // Without candidates: the server learns the browser's addresses from its connectivity checks.
    await connection.setLocalDescription();
    const sdp = await this.#answer(seat, connection.localDescription?.sdp ?? '');
    if (this.#connection === connection) await connection.setRemoteDescription({ type: 'answer', sdp });
    return undefined;
  }

  /** Opens the WHEP session of a seat. @throws Problem */
  async #answer({ token }: CreatedPeer, offer: string): Promise<string> {
    const { base, what } = this.#options;
    const url = new URL('whep', base);
    for (const [name, value] of Object.entries(what)) url.searchParams.set(name, value);
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/sdp' };
    let response: Response;
    let text: string;
    try {
      response = await fetch(url, { method: 'POST', body: offer, headers });
      text = await response.text();
    } catch {
      throw serverUnreachable();
    }
    if (response.ok) return text;
    throw problemOfAnswer(response.status, errorsOf(text) ?? `It answered with status ${response.status}.`);
  }

  /** A seat that no longer exists is not an error. */
  #giveBack({ peer }: CreatedPeer): void {
    this.#options.api.deletePeer(this.#options.roomId, peer.id).catch(() => undefined);
  }

  #stateChanged(state: RTCPeerConnectionState): void {
    clearTimeout(this.#silence);
    const lost = (): void =>
      // A path that never worked will not work the next time either.
      this.#end(new Problem('connection-lost', 'No picture', 'No media arrives from the server.'), this.#everConnected);
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

/** Returns the server's text about a refusal. Error pages of a proxy are not shown. */
function errorsOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { errors?: string }).errors;
  } catch {
    return undefined;
  }
}
