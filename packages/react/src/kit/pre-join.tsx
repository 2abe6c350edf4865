import { type FormEvent, type ReactElement, type ReactNode, useEffect, useRef } from 'react';
import { DeviceSelect, SpeakerSelect } from './devices.js';
import { IconButton } from './icons.js';
import { LevelMeter } from './level.js';
import type { Preview } from './preview.js';
import { Avatar } from './tile.js';

/** Props of `PreJoin`. */
export interface PreJoinProps {
  readonly preview: Preview;
  readonly name: string;
  /** Called with each change of the name. */
  readonly onName: (name: string) => void;
  /** Called when the person presses the button; take the media from the preview then. */
  readonly onJoin: () => void;
  /** True while the page gets a seat for the person. */
  readonly busy?: boolean;
  /** More fields of the form, such as a choice of rooms. */
  readonly children?: ReactNode;
}

/** A form for people who are about to join: their name, their picture, how loud they are, and their devices. */
export function PreJoin({ preview, name, onName, onJoin, busy = false, children }: PreJoinProps): ReactElement {
  const { camera, microphone, notice, ready } = preview;
  const waits = busy || !ready;
  function submit(event: FormEvent): void {
    event.preventDefault();
    if (!waits) onJoin();
  }
  return (
    <form className="bloom-prejoin" onSubmit={submit}>
      <div className="bloom-look">
        <div className="bloom-preview">
          <Picture track={camera.media} name={name} />
          <div className="bloom-switches">
            <IconButton
              icon="microphone"
              off={!microphone.on}
              text={microphone.on ? 'Mute' : 'Unmute'}
              disabled={!ready}
              onClick={() => void microphone.toggle()}
            />
            <IconButton
              icon="camera"
              off={!camera.on}
              text={camera.on ? 'Stop picture' : 'Start picture'}
              disabled={!ready}
              onClick={() => void camera.toggle()}
            />
          </div>
        </div>
        <LevelMeter track={microphone.media} />
        <p className="bloom-hint" role="status">
          {ready ? notice : 'The browser asks for camera and microphone …'}
        </p>
      </div>
      <div className="bloom-fields">
        <label className="bloom-field">
          <span>Your name</span>
          <input
            value={name}
            onChange={({ target }) => onName(target.value)}
            required
            pattern=".*\S.*"
            maxLength={40}
            autoComplete="nickname"
          />
        </label>
        {children}
        <DeviceSelect kind="camera" control={camera} />
        <DeviceSelect kind="microphone" control={microphone} />
        <SpeakerSelect />
        <button type="submit" className="bloom-button bloom-primary" aria-disabled={waits}>
          {busy ? 'Joining …' : 'Join'}
        </button>
      </div>
    </form>
  );
}

function Picture({ track, name }: { readonly track: MediaStreamTrack | null; readonly name: string }): ReactElement {
  const video = useRef<HTMLVideoElement>(null);
  useEffect(() => {
    if (video.current !== null) video.current.srcObject = track === null ? null : new MediaStream([track]);
  }, [track]);
  return (
    <>
      {track === null && <Avatar name={name} />}
      <video ref={video} hidden={track === null} muted autoPlay playsInline aria-label="Your picture" />
    </>
  );
}
