import type { PeerRelay } from '@bloom/rooms';
import type { OpenedSession, SessionCaller, SessionRole, WatchedSource, WhipService } from '@bloom/whip';
import { HttpError, toHttpError } from './errors.js';
import { param, type Answer, type Call, type Operation } from './operation.js';
import type { OperationId } from './routes.js';

type WhipOperationId = Extract<OperationId, `${string}_whip` | `${string}_whep`>;

/** Returns the operations of WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep). */
export function whipOperations(whip: WhipService, publicHost: string): Record<WhipOperationId, Operation> {
  const slash = publicHost.indexOf('/');
  const root = slash < 0 ? '' : publicHost.slice(slash).replace(/\/+$/, '');
  const open = async (path: string, role: SessionRole, call: Call): Promise<Answer> => {
    const opened = await whip.open(callerOf(call), role, call.text);
    return { status: 201, sdp: opened.sdp, type: 'application/sdp', headers: headersOf(`${root}${path}`, opened) };
  };
  const update: Operation = async (call) => {
    if (call.ifMatch === undefined) {
      throw new HttpError(
        428,
        'The header "If-Match" is required: the entity tag of the session, or "*" to restart ICE',
      );
    }
    const given = { etag: entityTag(call.ifMatch), fragment: call.text };
    const restarted = await whip.update(callerOf(call), param(call.params, 'session_id'), given);
    if (restarted === undefined) return { status: 204 };
    const headers = { etag: `"${restarted.etag}"`, 'access-control-expose-headers': EXPOSED };
    return { status: 200, sdp: restarted.fragment, type: 'application/trickle-ice-sdpfrag', headers };
  };
  const close: Operation = async (call) => {
    await whip.close(callerOf(call), param(call.params, 'session_id'));
    return { status: 200 };
  };

  return {
    post_whip: (call) => open('/whip', { type: 'publish' }, call),
    patch_whip: update,
    delete_whip: close,
    post_whep: async (call) => open('/whep', { type: 'watch', source: sourceOf(call.query) }, call),
    patch_whep: update,
    delete_whep: close,
  };
}

/**
 * Returns the headers that `OPTIONS` adds for a peer with a valid token (RFC 9725 section 4.6): a client that reaches
 * the node by TCP only needs the relay before its offer. None when the room refuses or cannot be reached, because a
 * preflight has to succeed.
 */
export async function relayHeaders(whip: WhipService, caller: SessionCaller): Promise<Record<string, string>> {
  try {
    return { link: iceLinks(await whip.relay(caller)), 'access-control-expose-headers': EXPOSED };
  } catch (error) {
    if (toHttpError(error) === undefined) throw error;
    return {};
  }
}

const EXPOSED = 'location, link, etag';

function callerOf({ token, requestId }: Call): SessionCaller {
  return { token, requestId };
}

function sourceOf(query: URLSearchParams): WatchedSource {
  const endpointId = query.get('peer');
  const trackId = query.get('track');
  if (endpointId !== null && trackId !== null) throw new HttpError(400, 'Give either "peer" or "track", not both');
  if (endpointId !== null) return { type: 'endpoint', endpointId };

  return trackId === null ? { type: 'speaker' } : { type: 'track', trackId };
}

/** Returns the tag without its quotes; null = any. RFC 9725 writes the wildcard in quotes, RFC 9110 without. */
function entityTag(ifMatch: string): string | null {
  const tag = ifMatch.trim().replace(/^"(.*)"$/, '$1');

  return tag === '*' ? null : tag;
}

function headersOf(path: string, { sessionId, etag, iceServer }: OpenedSession): Record<string, string> {
  return {
    location: `${path}/${sessionId}`,
    etag: `"${etag}"`,
    link: iceLinks(iceServer),
    'access-control-expose-headers': EXPOSED,
  };
}

/** Returns the relay as RFC 9725 section 4.6 writes it. */
function iceLinks({ address, secondAddress, port, tcpPort, tls, username, password }: PeerRelay): string {
  const urls = (secondAddress === undefined ? [address] : [address, secondAddress]).flatMap((each) => {
    const host = each.includes(':') ? `[${each}]` : each;

    return [
      `turn:${host}:${port}?transport=udp`,
      ...(tcpPort === null ? [] : [`turn:${host}:${tcpPort}?transport=tcp`]),
    ];
  });
  if (tls !== undefined) urls.push(`turns:${tls.host}:${tls.port}?transport=tcp`);

  return urls
    .map(
      (url) =>
        `<${url}>; rel="ice-server"; username="${username}"; credential="${password}"; credential-type="password"`,
    )
    .join(', ');
}
