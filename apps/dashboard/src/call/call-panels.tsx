import type { DataMessage, DeviceKind } from '@bloom/client';
import { type MediaControl, type Messages, useDevices, useRoomClient } from '@bloom/react';
import { type FormEvent, type ReactNode, useEffect, useRef } from 'react';
import { Failure } from '../ui/parts.js';
import { useAction } from '../ui/use-action.js';
import { MAX_TEXT } from './use-news.js';

interface FrameProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** The frame of a panel beside the pictures. Closing it returns the focus to where it was. */
function Panel({ title, onClose, children }: FrameProps) {
  useEffect(() => {
    const before = document.activeElement;
    return () => {
      if (document.activeElement === document.body && before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <aside className="panel" aria-label={title}>
      <div className="card-head">
        <h2>{title}</h2>
        <button type="button" className="quiet" onClick={onClose}>
          Close
        </button>
      </div>
      {children}
    </aside>
  );
}

interface ChatProps {
  readonly chat: Messages;
  readonly ownName: string;
  readonly nameOf: (peerId: string) => string;
  readonly onClose: () => void;
}

/** Messages between the people in the call. */
export function Chat({ chat: { messages, send }, ownName, nameOf, onClose }: ChatProps) {
  const ownId = useRoomClient().id;
  const action = useAction();
  const list = useRef<HTMLOListElement>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  useEffect(() => {
    list.current?.lastElementChild?.scrollIntoView({ block: 'nearest' });
  }, [messages]);
  async function say(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const field = input.current;
    const text = field?.value.trim() ?? '';
    if (field !== null && text !== '' && (await action.run(() => send(text)))) field.value = '';
    field?.focus();
  }
  return (
    <Panel title="Chat" onClose={onClose}>
      {messages.length === 0 && <p className="hint">No messages yet. They are gone when you leave.</p>}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls */}
      <ol className="messages" ref={list} tabIndex={0} aria-label="Messages">
        {messages.map(
          (message) =>
            typeof message.data === 'string' && (
              <li key={keyOf(message)} className={message.from === ownId ? 'own' : ''}>
                <strong>{message.from === ownId ? ownName : nameOf(message.from)}</strong>{' '}
                {message.data.slice(0, MAX_TEXT)}
              </li>
            ),
        )}
      </ol>
      <Failure action={action} />
      <form className="inline" onSubmit={(event) => void say(event)}>
        <input ref={input} aria-label="Message" maxLength={2_000} autoComplete="off" />
        <button type="submit">Send</button>
      </form>
    </Panel>
  );
}

const keys = new WeakMap<DataMessage, number>();
let lastKey = 0;

/** Messages have no ids and may be equal. */
function keyOf(message: DataMessage): number {
  const key = keys.get(message) ?? (lastKey += 1);
  keys.set(message, key);
  return key;
}

interface DevicesProps {
  readonly camera: MediaControl;
  readonly microphone: MediaControl;
  readonly onClose: () => void;
}

/** The camera and microphone in use. */
export function Devices({ camera, microphone, onClose }: DevicesProps) {
  return (
    <Panel title="Devices" onClose={onClose}>
      <DeviceChoice control={camera} kind="camera" label="Camera" current={camera.track?.media} />
      <DeviceChoice control={microphone} kind="microphone" label="Microphone" />
    </Panel>
  );
}

interface DeviceChoiceProps {
  readonly control: MediaControl;
  readonly kind: DeviceKind;
  readonly label: string;
  readonly current?: MediaStreamTrack | null | undefined;
}

function DeviceChoice({ control, kind, label, current }: DeviceChoiceProps) {
  const devices = useDevices(kind);
  if (devices.length === 0) return <p className="hint">{label}: none was found, or this page may not use any.</p>;
  return (
    <label className="field">
      <span>{label}</span>
      <select
        defaultValue={current?.getSettings().deviceId ?? ''}
        onChange={({ target }) => void control.turnOn(target.value)}
      >
        <option value="" disabled>
          Choose …
        </option>
        {devices.map(({ id, label: name }, i) => (
          <option key={id} value={id}>
            {name === '' ? `${label} ${i + 1}` : name}
          </option>
        ))}
      </select>
    </label>
  );
}
