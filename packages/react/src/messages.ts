import { type DataMessage, RoomClientError, type SendOptions } from '@bloom/client';
import { useCallback, useEffect, useState } from 'react';
import { useRoomClient } from './room.js';

/** A conversation among the clients of the room. */
export interface Messages {
  /** The newest messages in the order of their arrival, own ones included. The same array as long as nothing changed. */
  readonly messages: readonly DataMessage[];
  /** Sends text or bytes; see `RoomClient.sendData`. Rejects, and is in `error`, when the message cannot be sent. */
  readonly send: (data: string | Uint8Array<ArrayBuffer>, options?: Pick<SendOptions, 'to'>) => Promise<void>;
  /** Why there is no conversation, or the last message was not sent: the server has no data channels, or has closed this one. */
  readonly error: RoomClientError | null;
}

/** Settings of a conversation. */
export interface MessagesOptions {
  /** False for what is worthless when it is late. */
  readonly reliable?: boolean;
  /** Number of messages that are kept; 200 by default. */
  readonly limit?: number;
}

const NONE: readonly DataMessage[] = [];

/** Takes part in the conversation `label` while the component is there. */
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
        // The end of the call is no news of the conversation.
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
    async (data: string | Uint8Array<ArrayBuffer>, options: Pick<SendOptions, 'to'> = {}) => {
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
