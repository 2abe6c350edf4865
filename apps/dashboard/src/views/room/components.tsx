import type { Component, ComponentOptions, Room } from '@bloom/server-sdk';
import { useState } from 'react';
import { nameOf, titleOf } from '@bloom/react/kit';
import { hashOf } from '../../router.js';
import { useSession } from '../../session.js';
import { Fields, optionsOf } from '../../ui/fields.js';
import { Badge, Dialog, Empty, Failure } from '../../ui/parts.js';
import { type Action, useAction } from '../../ui/use-action.js';
import { COMPONENT_FORMS, type StartableType } from './component-fields.js';

/** The components of a room: start and stop them, and use what each kind offers. */
export function Components({ room }: { readonly room: Room }) {
  const [starting, setStarting] = useState(false);
  return (
    <section className="card">
      <div className="card-head">
        <h2>Components</h2>
        <button type="button" onClick={() => setStarting(true)}>
          Start a component
        </button>
      </div>
      {room.components.length === 0 ? (
        <Empty title="None is running">
          <p>A stream, a recording, a camera, a file or a phone can take part in this room.</p>
        </Empty>
      ) : (
        <ul className="plain">
          {room.components.map((component) => (
            <ComponentItem key={component.id} room={room} component={component} />
          ))}
        </ul>
      )}
      {starting && <Start room={room} onClose={() => setStarting(false)} />}
    </section>
  );
}

function Start({ room, onClose }: { readonly room: Room; readonly onClose: () => void }) {
  const { api, live } = useSession();
  const action = useAction();
  const [type, setType] = useState<StartableType>('hls');
  const { fields, h264, note } = COMPONENT_FORMS[type];
  async function start(form: FormData): Promise<void> {
    if (
      !(await action.run(() =>
        api.addComponent(room.id, type, optionsOf(fields, form) as ComponentOptions[StartableType]),
      ))
    )
      return;
    live.touch(room.id);
    onClose();
  }
  return (
    <Dialog title="Start a component" onClose={onClose}>
      <Failure action={action} />
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          void start(new FormData(event.currentTarget));
        }}
      >
        <label className="field">
          <span>Kind</span>
          <select value={type} onChange={({ target }) => setType(target.value as StartableType)}>
            {Object.keys(COMPONENT_FORMS).map((kind) => (
              <option key={kind} value={kind}>
                {titleOf(kind)}
              </option>
            ))}
          </select>
        </label>
        {h264 && room.config.videoCodec !== 'h264' && (
          <p className="hint">
            This kind needs a room with the video codec h264, which is set when the room is created.
          </p>
        )}
        {note !== undefined && <p className="hint">{note}</p>}
        <Fields key={type} fields={fields} />
        <button type="submit" className="primary" aria-disabled={action.busy}>
          Start
        </button>
      </form>
    </Dialog>
  );
}

function ComponentItem({ room, component }: { readonly room: Room; readonly component: Component }) {
  const { api, live } = useSession();
  const action = useAction();
  const { id, type, properties, tracks } = component;
  const act = (work: () => Promise<unknown>): void => {
    void action.run(work).then(() => live.touch(room.id));
  };
  return (
    <li className="item">
      <div className="item-head">
        <h3>
          {titleOf(type)} <span className="hint">{id.slice(0, 8)}</span>
        </h3>
        {type === 'hls' && (
          <Badge tone={component.properties.playable ? 'good' : 'warn'}>
            {component.properties.playable ? 'playable' : 'waits for pictures'}
          </Badge>
        )}
        {tracks.length > 0 && <Badge>{tracks.length === 1 ? '1 track' : `${tracks.length} tracks`}</Badge>}
        <span className="item-actions">
          {type === 'hls' && (
            <a className="button" href={hashOf({ view: 'watch', roomId: room.id })}>
              Watch
            </a>
          )}
          <button type="button" aria-disabled={action.busy} onClick={() => act(() => api.deleteComponent(room.id, id))}>
            Stop <span className="unseen">{titleOf(type)}</span>
          </button>
        </span>
      </div>
      <Failure action={action} />
      <dl className="properties">
        {set(properties).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{typeof value === 'object' ? JSON.stringify(value) : String(value)}</dd>
          </div>
        ))}
      </dl>
      {'subscribeMode' in properties && properties.subscribeMode === 'manual' && (
        <Subscribe room={room} component={component} act={act} />
      )}
      {type === 'sip' && <Phone room={room} component={component} action={action} act={act} />}
    </li>
  );
}

/** Returns the properties that have a value. */
function set(properties: Component['properties']): [string, unknown][] {
  return Object.entries(properties).filter(([, value]) => value !== null);
}

interface ControlProps {
  readonly room: Room;
  readonly component: Component;
  readonly act: (work: () => Promise<unknown>) => void;
}

/** Chooses the peers whose tracks a component in manual mode receives. */
function Subscribe({ room, component, act }: ControlProps) {
  const { api } = useSession();
  const origins = [
    ...room.peers.map(({ id, metadata }) => ({ id, name: nameOf(metadata, id) })),
    ...room.components.filter(({ id }) => id !== component.id).map(({ id, type }) => ({ id, name: titleOf(type) })),
  ];
  if (origins.length === 0) return <p className="hint">There is nothing to subscribe to yet.</p>;
  return (
    <form
      className="inline"
      onSubmit={(event) => {
        event.preventDefault();
        const origin = String(new FormData(event.currentTarget).get('origin'));
        act(() => api.subscribe(room.id, component.id, [origin]));
      }}
    >
      <select name="origin" aria-label="Whose tracks it takes">
        {origins.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      <button type="submit">Subscribe</button>
    </form>
  );
}

function Phone({ room, component, action, act }: ControlProps & { readonly action: Action }) {
  const { api } = useSession();
  return (
    <form
      className="inline"
      onSubmit={(event) => {
        event.preventDefault();
        const number = String(new FormData(event.currentTarget).get('number'));
        act(() => api.dial(room.id, component.id, number));
      }}
    >
      <input name="number" type="tel" required aria-label="Phone number" placeholder="+49 …" />
      <button type="submit" aria-disabled={action.busy}>
        Call
      </button>
      <button type="button" aria-disabled={action.busy} onClick={() => act(() => api.hangUp(room.id, component.id))}>
        Hang up
      </button>
    </form>
  );
}
