// Somebody with LiveKit's native SDK for Node, as a program: the SDK ends its whole process when something is wrong.
// Usage: native-person.mjs URL TOKEN. Publishes blue pictures and a tone of 880 Hz, and writes as lines of JSON what it
// receives: `{"hz"}` of a second of sound, `{"rgb"}` of the middle of the tenth picture of a track, with the longest
// pause between two pictures so far; and `{"reconnected"}`, with the number of times.
import {
  AudioFrame,
  AudioSource,
  AudioStream,
  LocalAudioTrack,
  LocalVideoTrack,
  Room,
  RoomEvent,
  TrackKind,
  TrackPublishOptions,
  TrackSource,
  VideoBufferType,
  VideoFrame,
  VideoSource,
  VideoStream,
} from '@livekit/rtc-node';

const [url, token] = process.argv.slice(2);
const HZ = 880;
const RATE = 48_000;
const STEP = RATE / 50;
const SIZE = { width: 320, height: 240 };

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

async function hear(track) {
  let [crossings, samples, last] = [0, 0, 0];
  for await (const frame of new AudioStream(track, { sampleRate: RATE, numChannels: 1 })) {
    for (const value of frame.data) {
      // Silence before the first sound.
      if (samples === 0 && Math.abs(value) < 1_000) continue;
      if (last < 0 && value >= 0) crossings += 1;
      samples += 1;
      last = value;
    }
    if (samples >= RATE) return say({ hz: (crossings * RATE) / samples });
  }
}

let [lastMs, maxGapMs] = [Infinity, 0];

async function see(track) {
  let count = 0;
  for await (const { frame } of new VideoStream(track)) {
    const nowMs = performance.now();
    maxGapMs = Math.max(maxGapMs, nowMs - lastMs);
    lastMs = nowMs;
    count += 1;
    if (count !== 10) continue;
    const { data, width, height } = frame.convert(VideoBufferType.RGBA);
    const at = (Math.floor(height / 2) * width + Math.floor(width / 2)) * 4;
    say({ rgb: [...data.subarray(at, at + 3)], maxGapMs });
  }
}

async function sendTone(source) {
  for (let at = 0; ; at += STEP) {
    const data = Int16Array.from({ length: STEP }, (_, i) => 8_000 * Math.sin((2 * Math.PI * HZ * (at + i)) / RATE));
    await source.captureFrame(new AudioFrame(data, RATE, 1, STEP));
  }
}

function sendPictures(source) {
  const { width, height } = SIZE;
  const data = new Uint8Array(width * height * 4);
  for (let at = 0; at < data.length; at += 4) data.set([30, 30, 220, 255], at);
  setInterval(() => source.captureFrame(new VideoFrame(data, width, height, VideoBufferType.RGBA)), 1_000 / 15);
}

const room = new Room();
room.on(RoomEvent.TrackSubscribed, (track) => void (track.kind === TrackKind.KIND_AUDIO ? hear : see)(track));
let reconnected = 0;
room.on(RoomEvent.Reconnected, () => say({ reconnected: (reconnected += 1) }));
await room.connect(url, token, { autoSubscribe: true, dynacast: false });
const [tone, picture] = [new AudioSource(RATE, 1), new VideoSource(SIZE.width, SIZE.height)];
const publish = (track, source) => room.localParticipant.publishTrack(track, new TrackPublishOptions({ source }));
await publish(LocalAudioTrack.createAudioTrack('mic', tone), TrackSource.SOURCE_MICROPHONE);
await publish(LocalVideoTrack.createVideoTrack('cam', picture), TrackSource.SOURCE_CAMERA);
sendPictures(picture);
await sendTone(tone);
