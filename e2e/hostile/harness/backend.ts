import { decodeServerMessage, encodeServerMessage, type SubscriptionType } from '@bloom/protocol';
import WebSocket from 'ws';

/** Opens the server websocket of a backend that has subscribed to the events of all rooms. */
export async function subscribe(
  url: string,
  token: string,
  eventTypes: readonly SubscriptionType[] = ['serverNotification'],
): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/socket/server/websocket`);
  socket.on('error', () => undefined);
  socket.once('open', () => {
    socket.send(encodeServerMessage({ type: 'authRequest', token }));
    for (const eventType of eventTypes) socket.send(encodeServerMessage({ type: 'subscribeRequest', eventType }));
  });
  let missing = eventTypes.length;
  await new Promise<void>((resolve) => {
    socket.on('message', (data: Buffer) => {
      if (decodeServerMessage(data).type === 'subscribeResponse' && --missing === 0) resolve();
    });
  });
  return socket;
}
