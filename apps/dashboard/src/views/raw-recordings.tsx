import type { BloomClient, RawRecording } from '@bloom/server-sdk';
import { useEffect, useState } from 'react';
import { hashOf } from '../router.js';
import { useSession } from '../session.js';
import { Badge, Dialog, Empty, Failure, Loading, Unanswered } from '../ui/parts.js';
import { useAction } from '../ui/use-action.js';
import { usePolled } from '../ui/use-polled.js';
import { MixActions, MixState } from './recording-mix.js';

const PAUSE_MS = 3_000;
const SHOWN = 100;
/** Larger files are not held in the memory of the page. */
const MAX_PLAYED_BYTES = 256 * 1024 * 1024;
/** Further tracks are left out of the dialog. */
const MAX_TRACKS = 100;
const TONES = { recording: 'warn', finished: undefined, uploading: 'warn', uploaded: 'good', failed: 'bad' } as const;

const keyOf = ({ room, part }: RawRecording): string => `${room}/${part}`;

/** What Recording components have recorded on all nodes, newest first, with what has become of it. */
export function RawRecordings() {
  const { api } = useSession();
  const action = useAction();
  const [opened, setOpened] = useState<RawRecording | null>(null);
  const [watched, setWatched] = useState<RawRecording | null>(null);
  const [removed, setRemoved] = useState<readonly string[]>([]);
  const { value, problem } = usePolled(() => api.listRawRecordings('cluster', { limit: SHOWN }), {
    key: 'raw recordings',
    pauseMs: PAUSE_MS,
  });
  const shown = value?.filter((recording) => !removed.includes(keyOf(recording)));
  return (
    <section className="card">
      <h2>Recordings of tracks</h2>
      <Failure action={action} />
      <Unanswered problem={problem} />
      {value === undefined && problem === null && <Loading />}
      {shown?.length === 0 && (
        <Empty title="No tracks have been recorded">
          <p>A Recording component writes a file for each track. It is listed here from its first second on.</p>
        </Empty>
      )}
      <ul className="plain">
        {shown?.map((recording) => (
          <li key={keyOf(recording)} className="item">
            <div className="item-head">
              <h3>
                <a href={hashOf({ view: 'rooms', roomId: recording.room })}>{recording.room}</a>{' '}
                <time dateTime={new Date(recording.startedAt).toISOString()}>
                  {new Date(recording.startedAt).toLocaleString('en-GB')}
                </time>
              </h3>
              {isComplete(recording) && (
                <span className="item-actions">
                  <MixActions recording={recording} action={action} onPlay={() => setWatched(recording)} />
                  {recording.state !== 'uploaded' && (
                    <button type="button" onClick={() => setOpened(recording)}>
                      Play <span className="unseen">{keyOf(recording)}</span>
                    </button>
                  )}
                  <button
                    type="button"
                    className="danger"
                    aria-disabled={action.busy}
                    onClick={() =>
                      void action
                        .run(() => api.deleteRawRecording(recording.room, recording.part))
                        .then((done) => done && setRemoved((before) => [...before, keyOf(recording)]))
                    }
                  >
                    Delete <span className="unseen">{keyOf(recording)}</span>
                  </button>
                </span>
              )}
            </div>
            <State recording={recording} />
            {recording.mix !== undefined && <MixState mix={recording.mix} />}
          </li>
        ))}
      </ul>
      {opened !== null && (
        <Dialog title={`Recording of ${opened.room}`} onClose={() => setOpened(null)}>
          <Tracks recording={opened} />
        </Dialog>
      )}
      {watched?.mix?.file !== undefined && (
        <Dialog title={`Movie of ${watched.room}`} onClose={() => setWatched(null)}>
          <Player
            url={api.rawRecordingUrl(watched.room, watched.part, watched.mix.file)}
            track={{ file: watched.mix.file, type: 'video', name: 'Movie' }}
          />
        </Dialog>
      )}
    </section>
  );
}

const isComplete = ({ state }: RawRecording): boolean => state !== 'recording';

function State({ recording }: { readonly recording: RawRecording }) {
  const { state, reason, progress, tracks, seconds, bytes } = recording;
  const tone = TONES[state];
  return (
    <p className="hint">
      <Badge {...(tone === undefined ? {} : { tone })}>{state}</Badge>{' '}
      {progress !== undefined && (
        <progress value={progress} aria-label="Upload">
          {Math.round(progress * 100)} %
        </progress>
      )}{' '}
      {tracks === 1 ? '1 track' : `${tracks} tracks`}, {Math.round(seconds)} s, {(bytes / 1e6).toFixed(1)} MB
      {reason === undefined ? '' : `: ${reason}`}
    </p>
  );
}

interface Track {
  readonly file: string;
  readonly type: string;
  readonly name: string;
}

function Tracks({ recording: { room, part } }: { readonly recording: RawRecording }) {
  const { api } = useSession();
  const { value, problem } = usePolled(() => tracksOf(api, room, part), { key: part, pauseMs: 3_600_000 });
  return (
    <>
      <Unanswered problem={problem} />
      {value === undefined && problem === null && <Loading />}
      {value?.length === 0 && <p>There is no report of its tracks.</p>}
      <ul className="plain">
        {value?.map((track) => (
          <li key={track.file} className="item">
            <h3>{track.name}</h3>
            <Player url={api.rawRecordingUrl(room, part, track.file)} track={track} />
          </li>
        ))}
      </ul>
    </>
  );
}

async function tracksOf(api: BloomClient, room: string, part: string): Promise<readonly Track[]> {
  const response = await fetch(api.rawRecordingUrl(room, part, 'report.json'), {
    headers: { authorization: api.authorization },
  });
  if (!response.ok) return [];
  const report = (await response.json()) as { tracks?: Record<string, { type?: unknown; name?: unknown }> };

  return Object.entries(report.tracks ?? {})
    .slice(0, MAX_TRACKS)
    .map(([file, { type, name }]) => ({
      file,
      type: String(type),
      name: typeof name === 'string' ? `${name}, ${String(type)}` : String(type),
    }));
}

/** Players cannot send the token, so the page fetches the file when it is asked to. */
function Player({ url, track: { type, name } }: { readonly url: string; readonly track: Track }) {
  const { api } = useSession();
  const action = useAction();
  const [source, setSource] = useState<string | null>(null);
  useEffect(() => () => void (source !== null && URL.revokeObjectURL(source)), [source]);
  const load = async (): Promise<void> => {
    const response = await fetch(url, { headers: { authorization: api.authorization } });
    if (!response.ok) throw new Error('the file is gone');
    if (Number(response.headers.get('content-length')) > MAX_PLAYED_BYTES) {
      await response.body?.cancel();
      throw new Error('the file is too large to play here');
    }
    setSource(URL.createObjectURL(await response.blob()));
  };
  if (source === null) {
    return (
      <>
        <Failure action={action} />
        <button type="button" aria-disabled={action.busy} onClick={() => void action.run(load)}>
          Load <span className="unseen">{name}</span>
        </button>
      </>
    );
  }
  // Nobody has written captions for a recording.
  // oxlint-disable-next-line jsx-a11y/media-has-caption
  return type === 'video' ? (
    <video controls src={source} aria-label={name} className="stream" />
  ) : (
    <audio controls src={source} aria-label={name} />
  );
}
