import type { DataMessage } from '@bloom/client';
import { type FormEvent, type ReactElement, type ReactNode, useEffect, useRef, useState } from 'react';
import { type Messages, useMessages, usePeers, useRoomClient } from '../index.js';
import { Panel } from './panel.js';
import { nameOfPeer } from './people.js';

/** Maximum number of characters shown of a message; any client in the room may have sent it. */
const MAX_TEXT = 2_000;
const MAX_MESSAGES = 500;
const SOMEONE = 'Someone';

/** The chat of the room. */
export interface ChatState extends Messages {
  /** Number of messages of others that came since `read` was called last. */
  readonly unread: number;
  /** Marks all messages as read; `Chat` does so while it is shown. */
  readonly read: () => void;
  /** Returns the name of a person who is in the call or was. */
  readonly nameOf: (peerId: string) => string;
}

/** Takes part in the chat of the room, a conversation of this label, and counts what was not read. */
export function useChat(label = 'chat'): ChatState {
  const client = useRoomClient();
  const chat = useMessages(label, { limit: MAX_MESSAGES });
  const [unread, setUnread] = useState(0);
  const [names] = useState(() => new Map<string, string>());
  for (const peer of usePeers()) names.set(peer.id, nameOfPeer(peer));
  useEffect(
    () =>
      client.on('data', (message) => {
        if (message.label === label && typeof message.data === 'string') setUnread((before) => before + 1);
      }),
    [client, label],
  );
  const [read] = useState(() => () => setUnread(0));
  return { ...chat, unread, read, nameOf: (peerId) => names.get(peerId) ?? SOMEONE };
}

/** Props of `Chat`. */
export interface ChatProps {
  readonly chat: ChatState;
  readonly ownName: string;
  /** Called by the button and the Escape key. */
  readonly onClose: () => void;
}

/** The messages of the people in the call, and a field for another one. Addresses in them are links. */
export function Chat({ chat, ownName, onClose }: ChatProps): ReactElement {
  const { messages, send, unread, read, nameOf } = chat;
  const ownId = useRoomClient().id;
  const [problem, setProblem] = useState<string | null>(null);
  const list = useRef<HTMLOListElement>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  useEffect(() => {
    if (unread > 0) read();
  }, [unread, read]);
  useEffect(() => {
    list.current?.lastElementChild?.scrollIntoView({ block: 'nearest' });
  }, [messages]);
  async function say(event: FormEvent): Promise<void> {
    event.preventDefault();
    const field = input.current;
    const text = field?.value.trim() ?? '';
    if (field === null || text === '') return;
    try {
      await send(text);
      setProblem(null);
      field.value = '';
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
    field.focus();
  }
  return (
    <Panel title="Chat" onClose={onClose}>
      {messages.length === 0 && <p className="bloom-hint">No messages yet. They are gone when you leave.</p>}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls */}
      <ol className="bloom-messages" ref={list} tabIndex={0} aria-label="Messages">
        {messages.map(
          (message) =>
            typeof message.data === 'string' && (
              <li key={keyOf(message)} data-own={message.from === ownId || undefined}>
                <strong>{message.from === ownId ? ownName : nameOf(message.from)}</strong>{' '}
                {withLinks(message.data.slice(0, MAX_TEXT))}
              </li>
            ),
        )}
      </ol>
      {problem !== null && (
        <p className="bloom-hint" role="alert">
          Not sent: {problem}
        </p>
      )}
      <form className="bloom-say" onSubmit={(event) => void say(event)}>
        <input ref={input} aria-label="Message" maxLength={MAX_TEXT} autoComplete="off" />
        <button type="submit" className="bloom-button">
          Send
        </button>
      </form>
    </Panel>
  );
}

/** An address of the web, without the punctuation that ends a sentence after it. */
const ADDRESS = /(https?:\/\/[^\s<>"]*[^\s<>".,:;!?)\]}'])/giu;

/** Returns the text with its addresses as links, which open beside the call and do not learn where they were read. */
export function withLinks(text: string): ReactNode[] {
  return text.split(ADDRESS).map((part, i) =>
    i % 2 === 0 ? (
      part
    ) : (
      // oxlint-disable-next-line react/no-array-index-key -- the parts of a text never change
      <a key={i} href={part} target="_blank" rel="noopener noreferrer nofollow">
        {part}
      </a>
    ),
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
