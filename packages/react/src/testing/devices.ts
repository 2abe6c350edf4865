// Cameras, microphones and a media connection for pages whose browser has none. The media connection never gets an
// answer: tests over it cover the signalling with a real node, and how the page handles its devices.

/** A device while it is open, or the picture of a screen. */
class TestMedia extends EventTarget {
  contentHint = '';
  readyState: 'live' | 'ended' = 'live';
  constructor(
    readonly kind: 'audio' | 'video',
    readonly deviceId: string,
  ) {
    super();
  }
  stop(): void {
    this.readyState = 'ended';
  }
  getSettings(): { deviceId: string } {
    return { deviceId: this.deviceId };
  }
}

/** The devices of a machine, and whether its user allows them. */
export class TestDevices extends EventTarget {
  readonly opened: TestMedia[] = [];
  /** Resolves when the user has answered the permission prompt. */
  answer = (): Promise<void> => Promise.resolve();

  /** Keeps the next questions open. Returns whether one is open, and the answer to all that are. */
  hold(): { isAsked: () => boolean; allow: () => void } {
    const open: (() => void)[] = [];
    this.answer = () => new Promise((resolve) => open.push(resolve));
    return {
      isAsked: () => open.length > 0,
      allow: () => {
        for (const answer of open.splice(0)) answer();
      },
    };
  }

  async getUserMedia({ video, audio }: MediaStreamConstraints): Promise<MediaStream> {
    await this.answer();
    return this.#streamOf([
      ...(video === undefined ? [] : [new TestMedia('video', idOf(video))]),
      ...(audio === undefined ? [] : [new TestMedia('audio', idOf(audio))]),
    ]);
  }

  async getDisplayMedia(): Promise<MediaStream> {
    await this.answer();
    return this.#streamOf([new TestMedia('video', 'screen')]);
  }

  async enumerateDevices(): Promise<object[]> {
    return ['videoinput', 'audioinput'].flatMap((kind) =>
      ['front', 'back'].map((deviceId) => ({ kind, deviceId, label: deviceId })),
    );
  }

  /** The open devices, for example `audio front`. */
  get live(): string[] {
    return this.opened
      .filter(({ readyState }) => readyState === 'live')
      .map(({ kind, deviceId }) => `${kind} ${deviceId}`)
      .toSorted();
  }

  #streamOf(tracks: TestMedia[]): MediaStream {
    this.opened.push(...tracks);
    const ofKind = (kind: string) => () => tracks.filter((one) => one.kind === kind);
    return {
      getTracks: () => tracks,
      getVideoTracks: ofKind('video'),
      getAudioTracks: ofKind('audio'),
    } as unknown as MediaStream;
  }
}

function idOf(wanted: boolean | MediaTrackConstraints): string {
  const { deviceId } = wanted as { deviceId?: { exact: string } };
  return deviceId?.exact ?? 'default';
}

/** A connection that never finishes connecting. */
export class TestConnection extends EventTarget {
  readonly signalingState = 'stable';
  readonly sctp = null;
  setConfiguration(): void {}
  getTransceivers(): [] {
    return [];
  }
  createDataChannel(): EventTarget {
    return Object.assign(new EventTarget(), { readyState: 'connecting' });
  }
  addTransceiver(): object {
    return { sender: { replaceTrack: () => Promise.resolve() } };
  }
  removeTrack(): void {}
  createOffer(): Promise<never> {
    return new Promise(() => undefined);
  }
  close(): void {}
}
