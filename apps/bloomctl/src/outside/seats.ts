import { EXIT } from '../exit.js';
import { LayerFailure } from '../reach/findings.js';
import type { Answer, Server } from './server.js';
import type { Token } from './token.js';

/** Seconds after which the node removes a room of this tool by itself if the tool is killed. */
const PURGE_S = 60;
const GUEST = 'bloomctl';

/** What one participant needs. */
export interface Seat {
  readonly token: string;
  /** Address of the websocket. */
  readonly url: string;
  readonly peerId: string | undefined;
}

/** A room of a deployment, and tokens of peers in it, as far as the given token allows. */
export class Seats {
  roomId: string | undefined;
  readonly #server: Server;
  readonly #token: Token;
  /** Guests return to their seats, since an invitation may be for only a few. */
  #guests: Seat[] = [];
  #created = false;

  constructor(server: Server, token: Token) {
    this.#server = server;
    this.#token = token;
    this.roomId = token.roomId;
  }

  /** True if the server can be asked about the room and its peers. */
  get mayAsk(): boolean {
    return this.#token.kind === 'api';
  }

  /** Creates a room, or checks what the token opens. Returns a description. @throws LayerFailure */
  async open(): Promise<string> {
    const { kind, value } = this.#token;
    if (kind === 'peer') return `${this.roomId}, with the token of one peer`;
    if (kind === 'invitation') {
      for (let guests = 0; guests < 2; guests += 1) this.#guests.push(await this.#guest());
      return `${this.roomId}, as two guests`;
    }
    const body = { peerlessPurgeTimeout: PURGE_S };
    const answer = await this.#server.call('POST', '/room', { token: value, body });
    this.#expect(answer, 201);
    const { room } = answer.data as { room: { id: string } };
    this.roomId = room.id;
    this.#created = true;

    return `${room.id}, made for this and removed again`;
  }

  /** Returns the seats of a sender and a receiver; of the sender alone with a peer's token. @throws LayerFailure */
  async take(): Promise<Seat[]> {
    const { kind, value } = this.#token;
    if (kind === 'peer') return [{ token: value, url: this.#server.websocket(undefined), peerId: undefined }];
    if (kind === 'invitation') return this.#guests;

    return [await this.add(), await this.add()];
  }

  /** Adds a peer with the API token. @throws LayerFailure */
  async add(): Promise<Seat> {
    const body = { type: 'webrtc', options: {} };
    const answer = await this.#server.call('POST', `/room/${this.roomId}/peer`, { token: this.#token.value, body });
    this.#expect(answer, 201);

    return this.#seatOf(answer);
  }

  /** Returns what the server sees of a peer's media: `{ state, problem }`; undefined if it does not say. */
  async mediaOf(peerId: string | undefined): Promise<{ state?: string; problem?: string } | undefined> {
    if (!this.mayAsk || peerId === undefined) return undefined;
    const path = `/room/${this.roomId}/peer/${peerId}/stats`;
    const { data } = await this.#server.call('GET', path, { token: this.#token.value });

    return (data as { transport?: { media?: { state?: string; problem?: string } } } | undefined)?.transport?.media;
  }

  /** Removes the room if it was created here. Idempotent; never rejects. */
  async close(): Promise<void> {
    if (!this.#created) return;
    this.#created = false;
    // If this fails, the node removes the room by itself.
    await this.#server.call('DELETE', `/room/${this.roomId}`, { token: this.#token.value }).catch(() => undefined);
  }

  async #guest(): Promise<Seat> {
    const body = { token: this.#token.value, name: GUEST };
    const answer = await this.#server.call('POST', '/invitation', { body });
    this.#expect(answer, 201);

    return this.#seatOf(answer);
  }

  #seatOf({ data }: Answer): Seat {
    const {
      token,
      peer,
      peer_websocket_url: url,
    } = data as {
      token: string;
      peer: { id: string };
      peer_websocket_url: string;
    };
    return { token, url: this.#server.websocket(url), peerId: peer.id };
  }

  /** @throws LayerFailure */
  #expect({ status, error = 'no reason given' }: Answer, wanted: number): void {
    if (status === wanted) return;
    const { kind, source } = this.#token;
    const said = `${status}: ${error}`;
    if (status === 401 || status === 403 || status === 410) {
      throw new LayerFailure({
        exit: EXIT.rights,
        text: said,
        message: `The server refuses the ${kind === 'api' ? 'API token' : 'invitation'} from ${source}: ${error}.`,
        fix: kind === 'api' ? 'It must be the JF_SERVER_API_TOKEN of this server.' : 'Ask for a new invitation.',
      });
    }
    throw new LayerFailure({
      exit: status === 404 ? EXIT.unknown : status === 503 ? EXIT.unreachable : EXIT.fault,
      text: said,
      message: `The server answers ${said}.`,
      fix:
        status === 503
          ? 'The node is draining, is full or has lost its cluster: GET /health/ready says which.'
          : status === 404
            ? 'The room has ended, or what answers there is not a Bloom server.'
            : 'The log of the node says more.',
    });
  }
}
