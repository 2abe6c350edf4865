import { useState } from 'react';
import { hashOf } from '../router.js';
import { useLive, useSession } from '../session.js';
import { Empty, Failure, Loading, Page } from '../ui/parts.js';
import { startStream } from '../room.js';
import { useAction } from '../ui/use-action.js';
import { latencyText, StreamVideo } from './stream-video.js';
import { WhepVideo } from './whep-video.js';

/** A room for viewers: its stream, or the current speaker. */
export function Watch({ roomId }: { readonly roomId?: string | undefined }) {
  return roomId === undefined ? <Choice /> : <WatchRoom key={roomId} roomId={roomId} />;
}

/** The choice of rooms to watch. */
function Choice() {
  const { rooms } = useLive();
  const lively = rooms?.filter(({ peers, components }) => peers.length > 0 || components.length > 0);
  return (
    <Page title="Watch">
      {lively === undefined && <Loading />}
      {lively?.length === 0 && (
        <Empty title="There is nothing to watch">
          <p>
            As soon as someone is in a room, it is listed here. <a href={hashOf({ view: 'call' })}>Start a call</a>.
          </p>
        </Empty>
      )}
      <ul className="plain">
        {lively?.map(({ id, peers, components }) => (
          <li key={id} className="item">
            <div className="item-head">
              <h2>
                <a href={hashOf({ view: 'watch', roomId: id })}>{id}</a>
              </h2>
              <span className="hint">
                {peers.length === 1 ? '1 person' : `${peers.length} people`}
                {components.some(({ type }) => type === 'hls') && ', streamed'}
              </span>
            </div>
          </li>
        ))}
      </ul>
    </Page>
  );
}

type Showing = 'looking' | 'nothing' | 'playing';

function WatchRoom({ roomId }: { readonly roomId: string }) {
  const { api, live } = useSession();
  const [by, setBy] = useState<'hls' | 'whep'>('hls');
  const [showing, setShowing] = useState<Showing>('looking');
  const [latencyMs, setLatencyMs] = useState<number | null>(null);
  const [started, setStarted] = useState(false);
  const action = useAction();

  async function start(): Promise<void> {
    setStarted(await action.run(() => startStream(api, roomId)));
    live.touch(roomId);
  }
  const state = showing === 'playing' ? latencyText(latencyMs) : showing === 'nothing' ? 'Nothing is streamed yet' : '';
  return (
    <Page title={roomId} aside={<span role="status">{by === 'hls' ? state : 'the person who speaks, live'}</span>}>
      <Failure action={action} />
      <fieldset className="segments">
        <legend className="unseen">How to watch</legend>
        <label>
          <input type="radio" name="by" checked={by === 'hls'} onChange={() => setBy('hls')} />
          <span>Stream (HLS)</span>
        </label>
        <label>
          <input type="radio" name="by" checked={by === 'whep'} onChange={() => setBy('whep')} />
          <span>Live (WHEP)</span>
        </label>
      </fieldset>
      {by === 'whep' ? (
        <WhepVideo roomId={roomId} label={`Speaker of ${roomId}`} />
      ) : (
        <StreamVideo
          url={api.streamUrl(roomId)}
          label={`Stream of ${roomId}`}
          onShowing={setShowing}
          onLatency={setLatencyMs}
        />
      )}
      {by === 'hls' && showing === 'nothing' && (
        <p>
          {started ? (
            <span className="hint">Started; it begins when somebody in the room shows something.</span>
          ) : (
            <button type="button" className="primary" aria-disabled={action.busy} onClick={() => void start()}>
              {action.busy ? 'Starting …' : 'Start the stream'}
            </button>
          )}
        </p>
      )}
      <p className="hint">
        <a href={hashOf({ view: 'call', roomId })}>Join the room</a> instead of watching it, or{' '}
        <a href={hashOf({ view: 'rooms', roomId })}>look after it</a>.
      </p>
    </Page>
  );
}
