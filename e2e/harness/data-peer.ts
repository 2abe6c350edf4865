// A client with only data channels: the browser's own RTCPeerConnection in a page, signalled from here.
import type { Page } from 'playwright-core';
import { type MediaEvent, PeerConnection } from '../node/support/peer-socket.js';

interface Options {
  ordered?: boolean;
  maxRetransmits?: number;
  maxPacketLifeTime?: number;
  protocol?: string;
}

/** Text is kept as it came, binary data as `binary:` and hex digits. */
export interface Received {
  label: string;
  sender: string;
  message: string;
}

/** State of the page. Functions sent to it as text may use nothing else. */
interface DataPage {
  pc: RTCPeerConnection;
  channels: Record<string, RTCDataChannel[]>;
  received: Received[];
  add: (channel: RTCDataChannel) => void;
}

export class DataPeer {
  readonly #page: Page;
  readonly socket: PeerConnection;
  readonly id: string;

  private constructor(id: string, page: Page, socket: PeerConnection) {
    this.id = id;
    this.#page = page;
    this.socket = socket;
  }

  /** Joins and opens channels with these labels. Resolves when the first is open. */
  static async join(
    url: string,
    { id, token, page }: { id: string; token: string; page: Page },
    channels: Readonly<Record<string, Options>>,
  ): Promise<DataPeer> {
    const socket = await PeerConnection.joined(url, token, {});
    const peer = new DataPeer(id, page, socket);
    await page.evaluate(() => {
      const state: DataPage = {
        pc: new RTCPeerConnection(),
        channels: {},
        received: [],
        add: (channel) => {
          channel.binaryType = 'arraybuffer';
          (state.channels[channel.label] ??= []).push(channel);
          channel.addEventListener('message', ({ data }) => {
            const isText = typeof data === 'string';
            const text = isText ? data : String.fromCharCode(...new Uint8Array(data));
            const end = 1 + text.charCodeAt(0);
            const content = text.slice(end);
            const hex = Array.from(content, (char) => char.charCodeAt(0).toString(16).padStart(2, '0')).join('');
            const message = isText ? content : `binary:${hex}`;
            state.received.push({ label: channel.label, sender: text.slice(1, end), message });
          });
        },
      };
      state.pc.addEventListener('datachannel', ({ channel }) => state.add(channel));
      Object.assign(window, { state });
    }, null);
    for (const [label, options] of Object.entries(channels)) await peer.open(label, options);
    await peer.#negotiate();
    const [first] = Object.keys(channels);
    if (first !== undefined) await peer.isOpen(first);
    return peer;
  }

  async open(label: string, options: Options = {}): Promise<void> {
    await this.#page.evaluate(
      ([name, given]) => {
        const { state } = window as unknown as { state: DataPage };
        state.add(state.pc.createDataChannel(name, given));
      },
      [label, options] as const,
    );
  }

  /** Resolves when a channel with this label is open, whichever side opened it. */
  async isOpen(label: string): Promise<void> {
    await this.#until(
      (name) =>
        (window as unknown as { state: DataPage }).state.channels[name]?.some((one) => one.readyState === 'open') ===
        true,
      label,
    );
  }

  /** Resolves when no channel with this label is open. */
  async isClosed(label: string): Promise<void> {
    await this.#until(
      (name) =>
        (window as unknown as { state: DataPage }).state.channels[name]?.every((one) => one.readyState === 'closed') ===
        true,
      label,
    );
  }

  async send(label: string, message: string, receivers: readonly string[] = []): Promise<void> {
    const ids = receivers.map((id) => String.fromCharCode(id.length) + id).join('');
    await this.#sendRaw(label, String.fromCharCode(receivers.length) + ids + message, 1);
  }

  async sendBinary(label: string, bytes: readonly number[]): Promise<void> {
    await this.#page.evaluate(
      ([name, data]) => {
        const open = (window as unknown as { state: DataPage }).state.channels[name]?.find(
          (one) => one.readyState === 'open',
        );
        open?.send(new Uint8Array([0, ...data]));
      },
      [label, bytes] as const,
    );
  }

  /** Sends the same text `times` times, unchanged. */
  async #sendRaw(label: string, text: string, times: number): Promise<void> {
    await this.#page.evaluate(
      ([name, data, count]) => {
        const open = (window as unknown as { state: DataPage }).state.channels[name]?.find(
          (one) => one.readyState === 'open',
        );
        if (open === undefined) throw new Error(`no open channel ${name}`);
        for (let n = 0; n < count; n++) open.send(data);
      },
      [label, text, times] as const,
    );
  }

  async flood(label: string, message: string, times: number): Promise<void> {
    await this.#sendRaw(label, `\0${message}`, times);
  }

  /** Resolves with the received messages once there are `count`, and forgets them. */
  async received(count: number): Promise<Received[]> {
    await this.#until((wanted) => (window as unknown as { state: DataPage }).state.received.length >= wanted, count);
    return this.take();
  }

  take(): Promise<Received[]> {
    return this.#page.evaluate(() => (window as unknown as { state: DataPage }).state.received.splice(0), null);
  }

  /** Closes all channels with this label. */
  async close(label: string): Promise<void> {
    await this.#page.evaluate(
      (name) => (window as unknown as { state: DataPage }).state.channels[name]?.forEach((one) => one.close()),
      label,
    );
  }

  async leave(): Promise<void> {
    this.socket.socket.close();
    await this.socket.closed;
    await this.#page.evaluate(() => (window as unknown as { state: DataPage }).state.pc.close(), null);
  }

  /** Returns the media events of one kind. */
  custom(type: string): unknown[] {
    return this.socket.received.flatMap(({ type: outer, data }) =>
      outer === 'custom' && data.type === type ? [data.data] : [],
    );
  }

  async #negotiate(): Promise<void> {
    const custom = (type: string, data: object = {}): void =>
      this.socket.send({ type: 'custom', data: { type, data } } as MediaEvent);
    custom('renegotiateTracks');
    await this.#next('offerData');
    const sdp = await this.#page.evaluate(async () => {
      const { pc } = (window as unknown as { state: DataPage }).state;
      await pc.setLocalDescription(await pc.createOffer());
      return pc.localDescription?.sdp ?? '';
    }, null);
    custom('sdpOffer', { sdpOffer: { type: 'offer', sdp }, trackIdToTrackMetadata: {}, midToTrackId: {} });
    const answer = (await this.#next('sdpAnswer')) as { sdp: string };
    const candidate = (await this.#next('candidate')) as RTCIceCandidateInit;
    await this.#page.evaluate(
      async ([text, candidate]) => {
        const { pc } = (window as unknown as { state: DataPage }).state;
        await pc.setRemoteDescription({ type: 'answer', sdp: text });
        await pc.addIceCandidate({ candidate: candidate.candidate ?? '', sdpMLineIndex: 0 });
      },
      [answer.sdp, candidate] as const,
    );
  }

  async #next(type: string): Promise<unknown> {
    for (;;) {
      const [first] = this.custom(type);
      if (first !== undefined) return first;
      await this.socket.changed();
    }
  }

  async #until<T>(holds: (argument: T) => boolean, argument: T): Promise<void> {
    await this.#page.waitForFunction(holds as never, argument as never, { timeout: 15_000 });
  }
}
