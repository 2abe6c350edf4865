import { useCallback, useState } from 'react';
import { hashOf } from '../router.js';
import { useLive, useSession } from '../session.js';
import { Empty, Failure, Loading, Page } from '../ui/parts.js';
import { peopleIn, startStream } from '../room.js';
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
  const lively = rooms?.filter((room) => peopleIn(room) > 0 || room.components.length > 0);
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
        {lively
          ?.map((room) => ({ ...room, people: peopleIn(room) }))
          .map(({ id, people, components }) => (
            <li key={id} className="item">
              <div className="item-head">
                <h2>
                  <a href={hashOf({ view: 'watch', roomId: id })}>{id}</a>
                </h2>
                <span className="hint">
                  {people === 1 ? '1 person' : `${people} people`}
                  {components.some(({ type }) => type === 'hls') && ', streamed'}
                </span>
              </div>
            </li>
          ))}
      </ul>
    </Page>
  );
}

/** Seconds for which the page may watch before it asks again. */
const VIEWER_TTL_S = 3_600;

type Showing = 'looking' | 'nothing' | 'playing';

function WatchRoom({ roomId }: { readonly roomId: string }) {
  const { api, live } = useSession();
  const { rooms } = useLive();
  const room = rooms?.find(({ id }) => id === roomId);
  const isStreamed = room?.components.some(({ type }) => type === 'hls') === true;
  /** Undefined until the user chooses; until then a room that is streamed shows its stream. */
  const [chosen, setBy] = useState<'hls' | 'whep'>();
  const by = chosen ?? (isStreamed ? 'hls' : 'whep');
  const [showing, setShowing] = useState<Showing>('looking');
  const [latencyMs, setLatencyMs] = useState<number | null>(null);
  const [started, setStarted] = useState(false);
  const action = useAction();
  const begins = started || isStreamed;

  const authorization = useCallback(
    async () => `Bearer ${(await api.createViewer(roomId, { ttl: VIEWER_TTL_S })).token}`,
    [api, roomId],
  );

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
      {rooms === undefined ? (
        <Loading />
      ) : by === 'whep' ? (
        <WhepVideo roomId={roomId} label={`Speaker of ${roomId}`} />
      ) : (
        <StreamVideo
          url={api.streamUrl(roomId)}
          authorization={authorization}
          label={`Stream of ${roomId}`}
          onShowing={setShowing}
          onLatency={setLatencyMs}
        />
      )}
      {by === 'hls' && showing === 'nothing' && (
        <p>
          {begins ? (
            <span className="hint">Started. It begins when someone in the room publishes.</span>
          ) : (
            <button type="button" className="primary" aria-disabled={action.busy} onClick={() => void start()}>
              {action.busy ? 'Starting …' : 'Start the stream'}
            </button>
          )}
        </p>
      )}
      <p className="hint">
        <a href={hashOf({ view: 'call', roomId })}>Join the room</a> instead of watching it, or{' '}
        <a href={hashOf({ view: 'rooms', roomId })}>manage it</a>.
      </p>
    </Page>
  );
}
