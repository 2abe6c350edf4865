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

const videoWish = { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 24, max: 30 } };

interface Devices {
  video?: MediaStreamTrack | undefined;
  audio?: MediaStreamTrack | undefined;
  notice: string | null;
}

async function openDevices(): Promise<Devices> {
  try {
    // Both at once: the person is asked one question.
    const both = await navigator.mediaDevices.getUserMedia({ video: videoWish, audio: true });
    return { video: both.getVideoTracks()[0], audio: both.getAudioTracks()[0], notice: null };
  } catch (error) {
    if (error instanceof Error && error.name === 'NotAllowedError') {
      return {
        notice: 'Camera and microphone cannot be used: the browser has no permission. They are generated instead.',
      };
    }
  }
  const opened = await Promise.allSettled([openDevice('camera', { constraints: videoWish }), openDevice('microphone')]);
  const [video, audio] = opened.map((result) => (result.status === 'fulfilled' ? result.value : undefined));
  const problems = opened.flatMap((result) => (result.status === 'rejected' ? [(result.reason as Error).message] : []));
  const notice = problems.length === 0 ? null : `There is ${problems.join(', and ')}. It is generated instead.`;

  return { video, audio, notice };
}

export async function openLocalMedia(wish: Wish, name: string): Promise<LocalMedia> {
  const devices: Devices = wish === 'camera' ? await openDevices() : { notice: null };
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
    notice: devices.notice,
    stop: () => {
      video.track.stop();
      audio.track.stop();
    },
  };
}
