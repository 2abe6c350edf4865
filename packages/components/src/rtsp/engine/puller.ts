import { constants } from 'node:os';
import { toAnnexB } from '@bloom/rtp';
import { AwakeClock, type Clock, inTime, Timer } from '@bloom/time';
import type { BitStreamFilterContext, FormatContext, Packet, Stream } from 'node-av/lib';
import { check } from '../../av/codecs.js';
import type { Native } from '../../av/native.js';
import { ComponentError } from '../../errors.js';
import { AccessUnits } from '../../h264/access-units.js';
import { OpusSound } from './opus-sound.js';
import { parseSourceUri } from '../source-uri.js';
import { Playout } from './playout.js';
import type { FromPuller, PulledFrame, PullerInput } from './puller-protocol.js';
import { RtspGate } from './rtsp-gate.js';

/** Time limit for connecting and learning what the source sends. */
const OPEN_MS = 10_000;
/** A source that sends nothing for this long counts as lost. */
const STALL_MS = 5_000;
/** Time limit for the first key picture: cameras send one every few seconds. */
const PICTURE_MS = 20_000;
/** After this many key pictures without parameter sets, none are expected. */
const BARE_KEYS = 3;
const CHECK_MS = 1_000;
/** How long to wait for the next packet of a source before leaving it. */
const LEAVE_MS = 300;
/** Frames due within this time are released together. */
const RELEASE_MS = 20;

/** The library's error when a source accepts none of the RTP transports offered. */
const REFUSED_TRANSPORT = -constants.errno.EPROTONOSUPPORT;

interface Frame {
  kind: 'audio' | 'video';
  data: Buffer;
}

/** Stream numbers in the playout. */
const VIDEO = 0;
const AUDIO = 1;

interface PullerOptions {
  native: Native;
  clock: Clock;
  send(message: FromPuller): void;
}

/** One connection to a source. Reads it until it ends, and sends its frames when their time has come. */
export class Puller {
  readonly #native: Native;
  readonly #clock: Clock;
  /** Judges the silence of the source. */
  readonly #awake: Clock;
  readonly #send: (message: FromPuller) => void;
  readonly #playout = new Playout<Frame>();
  readonly #release: Timer;
  #releaseAtMs = 0;
  readonly #checks: Timer;
  readonly #pictures = new AccessUnits();
  #running: Promise<void> = Promise.resolve();
  #format: FormatContext | undefined;
  #gate: RtspGate | undefined;
  #streams: Stream[] = [];
  /** Tick duration of each stream in ms. Querying the library per packet would cost more than the packet itself. */
  #msPerTick: number[] = [];
  /** Indices of the chosen streams. */
  #video: number | undefined;
  #audio: number | undefined;
  #annexB: BitStreamFilterContext | undefined;
  #sound: OpusSound | 'opus' | undefined;
  #soundRefused = false;
  /** True once a picture has arrived, or if the source has none. */
  #hasPicture = false;
  #openedAtMs = 0;
  #heardAtMs: number | undefined;
  /** Timeline position of the first frame in ms, a picture if the source has any. Sound before it is left out. */
  #startMs: number | undefined;
  #ended = false;
  /** Unix time of the clock's zero. Read only once, since times must not jump. */
  readonly #unixMs: number;

  constructor({ native, clock, send }: PullerOptions) {
    this.#unixMs = clock.wall() - clock.now();
    this.#native = native;
    this.#clock = clock;
    this.#awake = new AwakeClock(clock);
    this.#send = send;
    this.#release = new Timer(clock);
    this.#checks = new Timer(clock);
  }

  /** Resolves when the source has ended or `end` was called; by then the reason has been sent. */
  run(input: PullerInput): Promise<void> {
    this.#running = this.#run(input);

    return this.#running;
  }

  async #run({ uri, address, format, options, rtpPort }: PullerInput): Promise<void> {
    const { lib } = this.#native;
    this.#openedAtMs = this.#awake.now();
    this.#checks.repeat(CHECK_MS, () => this.#check());
    const camera = format === 'rtsp' ? parseSourceUri(uri) : undefined;
    if (camera !== undefined)
      this.#gate = await RtspGate.open({ source: camera, address, rtpPort, clock: this.#clock });
    const source = new lib.FormatContext();
    source.allocContext();
    this.#format = source;
    const given = lib.Dictionary.fromObject(options);
    const opened = await source.openInput(this.#gate?.uri ?? uri, lib.InputFormat.findInputFormat(format), given);
    if (opened === REFUSED_TRANSPORT && camera?.scheme === 'rtsps') {
      return this.#lose('it refuses RTP over TCP, and RTP over UDP is not encrypted: let it send by TCP, or use rtsp');
    }
    if (opened < 0) return this.#lose(lib.FFmpegError.strerror(opened));
    const packet = new lib.Packet();
    packet.alloc();
    try {
      for (;;) {
        const read = await source.readFrame(packet);
        if (this.#ended) return;
        if (read === this.#native.constants.AVERROR_EAGAIN) continue;
        if (read < 0) return this.#lose(lib.FFmpegError.strerror(read));
        this.#heardAtMs = this.#awake.now();
        this.#receive(source, packet);
        packet.unref();
      }
    } catch (error) {
      if (!(error instanceof ComponentError)) throw error;
      this.#finish({ type: 'refused', reason: error.message });
    }
  }

  /** Leaves the source properly, since cameras have few sessions. Does not wait for a silent one. */
  async end(): Promise<void> {
    this.#ended = true;
    this.#release.stop();
    this.#checks.stop();
    // A source must not be closed while it is being read, and `closeInput` would interrupt it before it has said
    // goodbye.
    const isRead = this.#running.then(() => true);
    if (await inTime(isRead, { timeoutMs: LEAVE_MS, late: () => false, clock: this.#clock }))
      this.#format?.freeContext();
    else this.#format?.interrupt();
    await this.#gate?.close();
  }

  #lose(reason: string): void {
    const wrongSender = this.#heardAtMs === undefined && this.#gate?.refusedRtp === true;
    const known = wrongSender ? 'its RTP comes from another address or port than it named: try ?tcp' : undefined;
    this.#finish({ type: 'lost', reason: this.#gate?.failure ?? known ?? reason });
  }

  #finish(message: FromPuller): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#release.stop();
    this.#checks.stop();
    this.#send(message);
  }

  #check(): void {
    const nowMs = this.#awake.now();
    const sinceOpenMs = nowMs - this.#openedAtMs;
    if (this.#heardAtMs === undefined) {
      if (sinceOpenMs > OPEN_MS) this.#lose(`it has sent nothing for ${OPEN_MS / 1_000} s`);
    } else if (nowMs - this.#heardAtMs > STALL_MS) {
      this.#lose(`it has sent nothing for ${STALL_MS / 1_000} s`);
    } else if (this.#pictures.bareKeys >= BARE_KEYS) {
      this.#lose('its key pictures lack SPS and PPS, as its session description does: let it send them in band');
    } else if (this.#startMs === undefined && sinceOpenMs > PICTURE_MS) {
      this.#lose(`it has sent no key picture for ${PICTURE_MS / 1_000} s`);
    }
  }

  #receive(source: FormatContext, packet: Packet): void {
    if (source.nbStreams !== this.#streams.length || this.#video === undefined) this.#choose(source);
    const { streamIndex, pts } = packet;
    const msPerTick = this.#msPerTick[streamIndex];
    if (msPerTick === undefined) return;
    const ptsMs = pts === this.#native.constants.AV_NOPTS_VALUE ? undefined : Number(pts) * msPerTick;
    if (streamIndex === this.#video) this.#receivePicture(packet, ptsMs);
    else if (streamIndex === this.#audio) this.#receiveSound(packet, ptsMs);
  }

  /** Picks the first H.264 stream and the first audio stream. */
  #choose(source: FormatContext): void {
    const { lib, constants } = this.#native;
    this.#streams = source.streams;
    this.#msPerTick = this.#streams.map(({ timeBase: { num, den } }) => (1_000 * num) / den);
    const ofType = (type: number): Stream[] => this.#streams.filter(({ codecpar }) => codecpar.codecType === type);
    const videos = ofType(constants.AVMEDIA_TYPE_VIDEO);
    this.#audio ??= ofType(constants.AVMEDIA_TYPE_AUDIO)[0]?.index;
    if (this.#video !== undefined) return;
    // RTMP sources announce their streams one by one, all others at the start.
    if (videos.length === 0 && source.iformat?.name !== 'flv') this.#hasPicture = true;
    const video = videos.find(({ codecpar }) => codecpar.codecId === constants.AV_CODEC_ID_H264);
    if (video !== undefined) this.#openVideo(video);
    else refuseOthers(videos.map(({ codecpar }) => lib.avGetCodecName(codecpar.codecId) ?? 'none'));
  }

  #openVideo(video: Stream): void {
    this.#video = video.index;
    const { extradata } = video.codecpar;
    if (extradata === null) return;
    // The configuration starts with a 1 in containers that use lengths instead of start codes.
    if (extradata[0] === 1) this.#annexB = this.#openAnnexB(video);
    else this.#pictures.pushWhole(extradata);
  }

  #openAnnexB({ codecpar, timeBase }: Stream): BitStreamFilterContext {
    const { lib } = this.#native;
    const filter = lib.BitStreamFilter.getByName('h264_mp4toannexb');
    const context = new lib.BitStreamFilterContext();
    if (filter === null) throw new ComponentError('NATIVE_FAILED', 'the filter h264_mp4toannexb is missing');
    check(context.alloc(filter), 'out of memory for a filter');
    codecpar.copy(context.inputCodecParameters!);
    context.inputTimeBase = timeBase;
    check(context.init(), 'the H.264 parameters of the source are invalid');

    return context;
  }

  #receivePicture(packet: Packet, ptsMs: number | undefined): void {
    if (this.#annexB !== undefined) {
      if (this.#annexB.sendPacketSync(packet) < 0 || this.#annexB.receivePacketSync(packet) < 0) return;
    }
    const { data } = packet;
    if (data === null) return;
    for (const { nals } of this.#pictures.pushWhole(data)) {
      this.#hasPicture = true;
      this.#push(VIDEO, ptsMs, { kind: 'video', data: toAnnexB(nals) });
    }
  }

  #receiveSound(packet: Packet, ptsMs: number | undefined): void {
    const { data } = packet;
    if (!this.#hasPicture || this.#soundRefused || data === null) return;
    try {
      this.#sound ??= this.#openSound(packet.streamIndex);
      if (this.#sound === 'opus') this.#push(AUDIO, ptsMs, { kind: 'audio', data: Buffer.from(data) });
      else
        this.#sound.convert(packet, ptsMs, (opus, opusMs) => this.#push(AUDIO, opusMs, { kind: 'audio', data: opus }));
    } catch (error) {
      if (!(error instanceof ComponentError)) throw error;
      this.#soundRefused = true;
      this.#send({ type: 'noSound', reason: error.message });
    }
  }

  /** Called after the first picture, because some containers name the codec correctly only with the first packets. */
  #openSound(stream: number): OpusSound | 'opus' {
    const { codecpar } = this.#streams[stream]!;
    if (codecpar.codecId === this.#native.constants.AV_CODEC_ID_OPUS) return 'opus';

    return OpusSound.open(this.#native, codecpar);
  }

  #push(stream: number, ptsMs: number | undefined, frame: Frame): void {
    this.#playout.push({ stream, ptsMs, frame }, this.#clock.now());
    this.#schedule();
  }

  #schedule(): void {
    const nowMs = this.#clock.now();
    const waitMs = this.#playout.waitMs(nowMs);
    if (waitMs === undefined || this.#ended) return;
    const atMs = nowMs + Math.max(waitMs, RELEASE_MS);
    if (this.#release.running && this.#releaseAtMs <= atMs) return;
    this.#releaseAtMs = atMs;
    this.#release.start(atMs - nowMs, () => this.#takeDue());
  }

  #takeDue(): void {
    const frames: PulledFrame[] = [];
    for (const { timeMs, dueMs, frame } of this.#playout.take(this.#clock.now())) {
      if (frame.kind === 'video' || this.#video === undefined) this.#startMs ??= timeMs;
      if (this.#startMs === undefined || timeMs < this.#startMs) continue;
      const timestamp = Math.round((timeMs - this.#startMs) * (frame.kind === 'video' ? 90 : 48));
      frames.push({ ...frame, timestamp, dueMs: dueMs + this.#unixMs });
    }
    if (frames.length > 0) this.#send({ type: 'frames', frames });
    this.#schedule();
  }
}

/** Throws for other codecs. Pictures of an unknown kind may still turn out to be H.264. */
function refuseOthers(codecs: readonly string[]): void {
  const other = codecs.find((name) => name !== 'none');
  if (other === undefined) return;
  const name = other === 'hevc' ? 'H.265 (hevc)' : other;
  throw new ComponentError(
    'BAD_H264',
    `the source sends ${name}, but rooms take H.264: change the video codec of the camera or encoder`,
  );
}
