// Local video and audio: camera and microphone if available, or else generated ones.
import { openDevice } from '@bloom/client';
import { generatedPicture } from './generated-picture.js';
import { generatedSound } from './generated-sound.js';

export type Wish = 'camera' | 'generated';

/** A camera or a microphone, or what is generated in its place. */
export interface LocalSource<Device extends string> {
  readonly track: MediaStreamTrack;
  readonly source: Device | 'generated';
  /** Opens the device again after it was closed; absent where the media is generated. */
  readonly reopen?: () => Promise<MediaStreamTrack>;
}

export interface LocalMedia {
  readonly video: LocalSource<'camera'>;
  readonly audio: LocalSource<'microphone'>;
  /** What was asked for and is not available, in a sentence; null when everything is. */
  readonly notice: string | null;
  stop(): void;
}

/** Explains why a device cannot be used. */
function reasonOf(error: unknown): string {
  switch (error instanceof Error ? error.name : '') {
    case 'NotAllowedError':
    case 'SecurityError':
      return 'the browser has no permission';
    case 'NotFoundError':
    case 'OverconstrainedError':
      return 'none was found';
    case 'NotReadableError':
    case 'AbortError':
      return 'another program has it';
    case 'InsecureContext':
      return 'browsers give them only to pages from localhost or over HTTPS';
    default:
      return 'the browser could not start it';
  }
}

function fallbackNotice(camera: string | null, microphone: string | null): string | null {
  if (camera !== null && camera === microphone) {
    return `Camera and microphone cannot be used (${camera}), so the others see and hear a generated picture and sound.`;
  }
  const sentences = [];
  if (camera !== null) sentences.push(`The camera cannot be used (${camera}), so the others see a generated picture.`);
  if (microphone !== null) {
    sentences.push(`The microphone cannot be used (${microphone}), so the others hear a generated sound.`);
  }
  return sentences.length === 0 ? null : sentences.join(' ');
}

const videoWish = { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 24, max: 30 } };

interface Devices {
  video?: MediaStreamTrack | undefined;
  audio?: MediaStreamTrack | undefined;
  videoReason: string | null;
  audioReason: string | null;
}

async function askForDevices(): Promise<Devices> {
  // Absent on pages that are neither local nor encrypted.
  if (!('mediaDevices' in navigator)) {
    const reason = reasonOf(Object.assign(new Error(), { name: 'InsecureContext' }));
    return { videoReason: reason, audioReason: reason };
  }
  try {
    const both = await navigator.mediaDevices.getUserMedia({ video: videoWish, audio: true });
    const [video, audio] = [both.getVideoTracks()[0], both.getAudioTracks()[0]];
    return { video, audio, videoReason: null, audioReason: null };
  } catch (error) {
    if (error instanceof Error && error.name === 'NotAllowedError') {
      return { videoReason: reasonOf(error), audioReason: reasonOf(error) };
    }
  }
  // One of the two is missing: use the other alone.
  const devices: Devices = { videoReason: null, audioReason: null };
  try {
    devices.video = (await navigator.mediaDevices.getUserMedia({ video: videoWish })).getVideoTracks()[0];
  } catch (error) {
    devices.videoReason = reasonOf(error);
  }
  try {
    devices.audio = (await navigator.mediaDevices.getUserMedia({ audio: true })).getAudioTracks()[0];
  } catch (error) {
    devices.audioReason = reasonOf(error);
  }
  return devices;
}

export async function openLocalMedia(wish: Wish, name: string): Promise<LocalMedia> {
  const devices: Devices = wish === 'camera' ? await askForDevices() : { videoReason: null, audioReason: null };
  const video: LocalMedia['video'] =
    devices.video === undefined
      ? { track: generatedPicture(name), source: 'generated' }
      : {
          track: devices.video,
          source: 'camera',
          reopen: () => openDevice('camera', { constraints: videoWish }),
        };
  const audio: LocalMedia['audio'] =
    devices.audio === undefined
      ? { track: generatedSound(), source: 'generated' }
      : { track: devices.audio, source: 'microphone', reopen: () => openDevice('microphone') };
  return {
    video,
    audio,
    notice: fallbackNotice(devices.videoReason, devices.audioReason),
    stop: () => {
      video.track.stop();
      audio.track.stop();
    },
  };
}
