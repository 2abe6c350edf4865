// A person's picture and sound: camera and microphone if available, otherwise generated media.
import { type CallMedia, openCallMedia } from '@bloom/react/kit';
import { generatedPicture } from './generated-picture.js';
import { generatedSound } from './generated-sound.js';

/** Devices, with generated media for those that are missing, or generated media alone. */
export type Wish = 'camera' | 'generated';

/** `nameOf` returns the name that a generated picture shows. */
export function openLocalMedia(wish: Wish, nameOf: () => string): Promise<CallMedia> {
  return openCallMedia({
    devices: wish === 'camera',
    substitute: { camera: () => generatedPicture(nameOf), microphone: generatedSound },
  });
}
