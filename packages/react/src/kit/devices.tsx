import { type DeviceKind, watchDevices } from '@bloom/client';
import { type ReactElement, useEffect, useState, useSyncExternalStore } from 'react';
import { useDevices } from '../index.js';
import type { DeviceControl } from './preview.js';

const NAMES: Readonly<Record<DeviceKind, string>> = { camera: 'Camera', microphone: 'Microphone' };

/** Props of `DeviceSelect`. */
export interface DeviceSelectProps {
  readonly kind: DeviceKind;
  /** The control of a preview, or `{...useLocalMedia(kind), media}` in a call. */
  readonly control: DeviceControl;
}

/** The choice of a camera or microphone; nothing as long as the browser names none. */
export function DeviceSelect({ kind, control }: DeviceSelectProps): ReactElement | null {
  const devices = useDevices(kind).filter(({ id }) => id !== '');
  const current = control.media?.getSettings().deviceId;
  if (devices.length === 0) return null;
  return (
    <Choice
      label={NAMES[kind]}
      options={devices}
      value={current}
      problem={control.error === null ? null : `It does not start: ${control.error.message}`}
      onChoose={(id) => void control.turnOn(id)}
    />
  );
}

/** A loudspeaker of the machine. */
export interface Speaker {
  readonly id: string;
  readonly label: string;
}

/** The choice of a loudspeaker. */
export interface SpeakerChoice {
  /** Empty where the browser does not offer a choice, as in Safari, or has not named them yet. */
  readonly speakers: readonly Speaker[];
  /** What `AudioRenderer` takes; undefined for the choice of the system. */
  readonly speaker: string | undefined;
  /** Chooses a loudspeaker for all components of the page. */
  readonly choose: (id: string) => void;
}

const STORAGE_KEY = 'bloom.device.audiooutput';
const listeners = new Set<() => void>();
/** The choice in pages without storage. */
let unstored: string | undefined;

/** Returns the machine's loudspeakers and the chosen one, which all components of the page share and a reload keeps. */
export function useSpeakers(): SpeakerChoice {
  const [speakers, setSpeakers] = useState<readonly Speaker[]>([]);
  const chosen = useSyncExternalStore(subscribe, readChosen, () => undefined);
  useEffect(() => {
    if (!('setSinkId' in HTMLMediaElement.prototype)) return undefined;
    let mounted = true;
    const update = async (): Promise<void> => {
      const found = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
      if (mounted) setSpeakers(found.flatMap(speakerOf));
    };
    void update();
    const stop = watchDevices(() => void update());
    return () => {
      mounted = false;
      stop();
    };
  }, []);
  // One that was unplugged may come back: the choice is kept.
  const speaker = speakers.some(({ id }) => id === chosen) ? chosen : undefined;
  return { speakers, speaker, choose };
}

function speakerOf({ kind, deviceId: id, label }: MediaDeviceInfo): readonly Speaker[] {
  return kind === 'audiooutput' && id !== '' ? [{ id, label }] : [];
}

function subscribe(changed: () => void): () => void {
  listeners.add(changed);
  return () => listeners.delete(changed);
}

function readChosen(): string | undefined {
  try {
    return localStorage.getItem(STORAGE_KEY) ?? unstored;
  } catch {
    return unstored;
  }
}

function choose(id: string): void {
  unstored = id;
  try {
    localStorage.setItem(STORAGE_KEY, id);
  } catch {
    // Private windows and sandboxed frames remember nothing.
  }
  for (const changed of listeners) changed();
}

/** The choice of a loudspeaker; nothing where the browser offers none. */
export function SpeakerSelect(): ReactElement | null {
  const { speakers, speaker, choose: onChoose } = useSpeakers();
  if (speakers.length === 0) return null;
  return (
    <Choice
      label="Loudspeaker"
      options={speakers}
      value={speaker ?? speakers[0]?.id}
      problem={null}
      onChoose={onChoose}
    />
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly options: readonly Speaker[];
  readonly value: string | undefined;
  readonly problem: string | null;
  readonly onChoose: (id: string) => void;
}

function Choice({ label, options, value, problem, onChoose }: ChoiceProps): ReactElement {
  const isListed = options.some(({ id }) => id === value);
  return (
    <label className="bloom-field">
      <span>{label}</span>
      <select value={isListed ? value : ''} onChange={({ target }) => onChoose(target.value)}>
        {!isListed && (
          <option value="" disabled>
            Choose …
          </option>
        )}
        {options.map(({ id, label: name }, i) => (
          <option key={id} value={id}>
            {name === '' ? `${label} ${i + 1}` : name}
          </option>
        ))}
      </select>
      {problem !== null && <span className="bloom-hint">{problem}</span>}
    </label>
  );
}
