// The movie of a recording: asking for it, watching it being made, and its end.
import type { RawRecording, RawRecordingMix } from '@bloom/server-sdk';
import { useSession } from '../session.js';
import { Badge } from '../ui/parts.js';
import type { Action } from '../ui/use-action.js';

const TONES = {
  queued: 'warn',
  fetching: 'warn',
  mixing: 'warn',
  uploading: 'warn',
  finished: undefined,
  uploaded: 'good',
  failed: 'bad',
} as const;

const titleOf = ({ room, part }: RawRecording): string => `${room}/${part}`;
const isUnderWay = (mix: RawRecordingMix | undefined): boolean => mix !== undefined && mix.endedAt === null;

interface MixActionsProps {
  readonly recording: RawRecording;
  readonly action: Action;
  readonly onPlay: () => void;
}

/** Buttons that start or end the mix of a recording, and play the movie. */
export function MixActions({ recording, action, onPlay }: MixActionsProps) {
  const { api } = useSession();
  const { room, part, mix } = recording;
  return (
    <>
      {mix?.file !== undefined && (
        <button type="button" onClick={onPlay}>
          Play movie <span className="unseen">of {titleOf(recording)}</span>
        </button>
      )}
      {isUnderWay(mix) ? (
        <button
          type="button"
          aria-disabled={action.busy}
          onClick={() => void action.run(() => api.deleteRawRecordingMix(room, part))}
        >
          End mix <span className="unseen">of {titleOf(recording)}</span>
        </button>
      ) : (
        <button
          type="button"
          aria-disabled={action.busy}
          onClick={() => void action.run(() => api.mixRawRecording(room, part))}
        >
          {mix === undefined ? 'Mix' : 'Mix again'} <span className="unseen">{titleOf(recording)}</span>
        </button>
      )}
    </>
  );
}

/** Says how far the mix is, or what became of it. */
export function MixState({ mix: { state, progress, seconds, bytes, reason } }: { readonly mix: RawRecordingMix }) {
  const tone = TONES[state];
  return (
    <p className="hint">
      Movie: <Badge {...(tone === undefined ? {} : { tone })}>{state}</Badge>{' '}
      {progress !== undefined && (
        <progress value={progress} aria-label="Mix">
          {Math.round(progress * 100)} %
        </progress>
      )}
      {seconds !== undefined && bytes !== undefined && `${Math.round(seconds)} s, ${(bytes / 1e6).toFixed(1)} MB`}
      {reason === undefined ? '' : `: ${reason}`}
    </p>
  );
}
