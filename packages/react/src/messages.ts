import { type Bytes, type DataMessage, RoomClientError, type SendOptions } from '@bloom/client';
import { useCallback, useEffect, useState } from 'react';
import { useRoomClient } from './room.js';

/** A conversation among the clients of the room. */
export interface Messages {
  /** The newest messages in order of arrival, including own ones. The array stays the same until something changes. */
  readonly messages: readonly DataMessage[];
  /** Sends text or bytes; see `RoomClient.sendData`. If the message cannot be sent, rejects and sets `error`. */
  readonly send: (data: string | Bytes, options?: Pick<SendOptions, 'to'>) => Promise<void>;
  /** Why there is no conversation, or the last message failed: the server has no data channels, or closed this one. */
  readonly error: RoomClientError | null;
}

/** Settings of a conversation. */
export interface MessagesOptions {
  /** False for data that is worthless when late. */
  readonly reliable?: boolean;
  /** Number of messages kept; 200 by default. */
  readonly limit?: number;
}

const NONE: readonly DataMessage[] = [];

/** Takes part in the conversation `label` while the component is mounted. */
export function useMessages(label: string, { reliable = true, limit = 200 }: MessagesOptions = {}): Messages {
  const client = useRoomClient();
  const [heard, setHeard] = useState({ label, messages: NONE });
  const [error, setError] = useState<RoomClientError | null>(null);
  const add = useCallback(
    (message: DataMessage) =>
      setHeard((before) =>
        before.label === label ? { label, messages: [...before.messages, message].slice(-limit) } : before,
      ),
    [label, limit],
  );

  useEffect(() => {
    setHeard((before) => (before.label === label ? before : { label, messages: NONE }));
    const open = (): void => {
      setError(null);
      client.openData(label, { reliable }).catch((failure: RoomClientError) => {
        // The end of the call says nothing about the conversation.
        if (failure.code !== 'LEFT') setError(failure);
      });
    };
    const stops = [
      client.on('connected', open),
      client.on('data', (message) => {
        if (message.label === label) add(message);
      }),
      client.on('dataClosed', (closed, reason) => {
        if (closed === label) setError(new RoomClientError('DATA_REFUSED', `the server closed ${label}: ${reason}`));
      }),
    ];
    if (client.state === 'connected') open();
    return () => {
      for (const stop of stops) stop();
    };
  }, [client, label, reliable, add]);

  const send = useCallback(
    async (data: string | Bytes, options: Pick<SendOptions, 'to'> = {}) => {
      await client.sendData(label, data, { ...options, reliable }).catch((failure: RoomClientError) => {
        if (failure.code !== 'LEFT') setError(failure);
        throw failure;
      });
      setError(null);
      add({ label, from: client.id, data });
    },
    [client, label, reliable, add],
  );

  return { messages: heard.label === label ? heard.messages : NONE, send, error };
}
