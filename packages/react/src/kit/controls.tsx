import type { ReactElement, ReactNode } from 'react';
import { type MediaControl, useRoomClient } from '../index.js';
import { IconButton } from './icons.js';

/** Props of `Controls`. */
export interface ControlsProps {
  readonly microphone: MediaControl;
  readonly camera: MediaControl;
  readonly screen: MediaControl;
  /** More buttons, between those of the media and the one that leaves. */
  readonly children?: ReactNode;
}

/** The buttons of a call: microphone, camera, screen and leaving. */
export function Controls({ microphone, camera, screen, children }: ControlsProps): ReactElement {
  const client = useRoomClient();
  // Phones cannot share their screen.
  const shares = 'getDisplayMedia' in (navigator.mediaDevices ?? {});
  return (
    <div className="bloom-controls" role="group" aria-label="Call controls">
      <IconButton
        icon="microphone"
        off={!microphone.on}
        text={microphone.on ? 'Mute' : 'Unmute'}
        onClick={() => void microphone.toggle()}
      />
      <IconButton
        icon="camera"
        off={!camera.on}
        text={camera.on ? 'Stop picture' : 'Start picture'}
        onClick={() => void camera.toggle()}
      />
      {shares && (
        <IconButton
          icon="screen"
          text={screen.on ? 'Stop sharing' : 'Share screen'}
          onClick={() => void screen.toggle()}
        />
      )}
      {children}
      <IconButton icon="leave" text="Leave" className="bloom-button bloom-leave" onClick={() => client.leave()} />
    </div>
  );
}
