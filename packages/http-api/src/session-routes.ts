import { notFound, type RouteOf, unavailable } from './route.js';
import { ErrorBody } from './schemas/common.js';

const SDP = 'application/sdp';
const FRAGMENT = 'application/trickle-ice-sdpfrag';

/** Returns the routes of one protocol: its endpoint and its sessions. */
export function sessionRoutes<Name extends 'whip' | 'whep'>(
  name: Name,
  summary: string,
  query?: RouteOf<string>['query'],
): RouteOf<`${'post' | 'patch' | 'delete'}_${Name}`>[] {
  const session = { path: `/${name}/:session_id`, auth: 'peer', tag: 'whip' } as const;

  return [
    {
      id: `post_${name}`,
      method: 'post',
      path: `/${name}`,
      auth: 'peer',
      tag: 'whip',
      summary,
      textBody: SDP,
      ...(query === undefined ? {} : { query }),
      answers: {
        201: { description: 'The answer; `location` names the session, `link` the relay', body: SDP },
        400: { description: 'The SDP offer is not usable', body: ErrorBody },
        ...notFound,
        406: { description: 'The SDP offer has no codec that the room allows', body: ErrorBody },
        409: { description: 'The peer is connected by websocket', body: ErrorBody },
        429: { description: 'The peer connects too often, or has too many requests in progress', body: ErrorBody },
        ...unavailable,
      },
    },
    {
      ...session,
      id: `patch_${name}`,
      method: 'patch',
      summary: 'Takes candidates, and restarts ICE',
      textBody: FRAGMENT,
      ifMatch: true,
      answers: {
        200: { description: 'ICE restarts: the credentials of the server', body: FRAGMENT },
        204: { description: 'Nothing to do: the server learns addresses from connectivity checks', body: 'empty' },
        400: { description: 'The SDP fragment is not usable', body: ErrorBody },
        ...notFound,
        412: { description: '`If-Match` names former credentials', body: ErrorBody },
        428: { description: '`If-Match` is missing', body: ErrorBody },
        429: {
          description: 'ICE was restarted less than a second ago, or the peer has too many requests in progress',
          body: ErrorBody,
        },
        ...unavailable,
      },
    },
    {
      ...session,
      id: `delete_${name}`,
      method: 'delete',
      summary: 'Ends the session: its peer is disconnected',
      answers: {
        200: { description: 'Ended', body: 'empty' },
        ...notFound,
        429: { description: 'The peer has too many requests in progress', body: ErrorBody },
        ...unavailable,
      },
    },
  ];
}
