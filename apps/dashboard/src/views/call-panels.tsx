import type { DeviceKind } from '@bloom/client';
import { useDevices } from '@bloom/react';
import { type FormEvent, type ReactNode, useEffect, useRef } from 'react';
import type { Call } from '../call/call.js';
import type { ChatMessage } from '../call/call-view.js';
import { Failure } from '../ui/parts.js';
import { useAction } from '../ui/use-action.js';

interface PanelProps {
  readonly call: Call;
  readonly onClose: () => void;
}

interface FrameProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** The frame of a panel beside the pictures. The focus goes back to where it was. */
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

/** Messages between those who are here. */
export function Chat({ call, messages, onClose }: PanelProps & { readonly messages: readonly ChatMessage[] }) {
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
    if (field !== null && text !== '' && (await action.run(() => call.say(text)))) field.value = '';
    field?.focus();
  }
  return (
    <Panel title="Chat" onClose={onClose}>
      {messages.length === 0 && <p className="hint">No messages yet. They are gone when you leave.</p>}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls */}
      <ol className="messages" ref={list} tabIndex={0} aria-label="Messages">
        {messages.map(({ number, name, own, text }) => (
          <li key={number} className={own ? 'own' : ''}>
            <strong>{name}</strong> {text}
          </li>
        ))}
      </ol>
      <Failure action={action} />
      <form className="inline" onSubmit={(event) => void say(event)}>
        <input ref={input} aria-label="Message" maxLength={2_000} autoComplete="off" />
        <button type="submit">Send</button>
      </form>
    </Panel>
  );
}

/** The camera and the microphone in use. */
export function Devices({ call, onClose }: PanelProps) {
  return (
    <Panel title="Devices" onClose={onClose}>
      <DeviceChoice call={call} kind="camera" label="Camera" current={call.view().ownPicture} />
      <DeviceChoice call={call} kind="microphone" label="Microphone" current={null} />
    </Panel>
  );
}

interface DeviceChoiceProps {
  readonly call: Call;
  readonly kind: DeviceKind;
  readonly label: string;
  readonly current: MediaStreamTrack | null;
}

function DeviceChoice({ call, kind, label, current }: DeviceChoiceProps) {
  const devices = useDevices(kind);
  if (devices.length === 0) return <p className="hint">{label}: none was found, or this page may not use any.</p>;
  return (
    <label className="field">
      <span>{label}</span>
      <select
        defaultValue={current?.getSettings().deviceId ?? ''}
        onChange={({ target }) => void call.useDevice(kind, target.value)}
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
