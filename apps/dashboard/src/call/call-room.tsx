import type { Encryption } from '@bloom/client/encryption';
import { RoomProvider, useRoom } from '@bloom/react';
import { CallView, IconButton, type JoiningMedia, Notice } from '@bloom/react/kit';
import type { CreatedPeer } from '@bloom/server-sdk';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { type Problem, problemOfEnd, serverUnreachable } from '../problem.js';

/** Outage after which the page shows the lobby again: long enough for a node to restart. */
const MAX_OUTAGE_MS = 20_000;

/** What a person brings to a call. */
export interface Joining {
  readonly roomId: string;
  readonly name: string;
  readonly seat: CreatedPeer;
  readonly media: JoiningMedia;
  /** Encryption of the call, which whoever created it closes. */
  readonly encryption?: Encryption | undefined;
}

export interface CallRoomProps {
  readonly call: Joining;
  /** Address of this page's folder. The API is beside it. */
  readonly base: string;
  /** Creates a link for others; absent if this person cannot invite any. */
  readonly invite?: () => Promise<string>;
  /** Further buttons beside the heading, and what they have to say. */
  readonly actions?: ReactNode;
  readonly notices?: ReactNode;
  /** Called when the call has ended, with null after leaving, otherwise with the reason. */
  readonly onLeft: (why: Problem | null) => void;
}

export function CallRoom({ call, base, invite, actions, notices, onLeft }: CallRoomProps) {
  const { roomId, name, seat, media, encryption } = call;
  const { token, websocketUrl } = seat;
  const room = useRoom({
    // The room's node may refuse websockets from this page, which has another origin (`JF_CHECK_ORIGIN`).
    url: new URL('socket/peer/websocket', base).href.replace(/^http/, 'ws'),
    token,
    metadata: { name },
    ...(encryption === undefined ? {} : { encryption }),
    reconnect: { maxOutageMs: MAX_OUTAGE_MS },
    renew: ({ code }) => (code === 'UNREACHABLE' ? { url: websocketUrl, token } : null),
  });
  const joined = useRef(false);
  useEffect(() => room.client.on('connected', () => (joined.current = true)), [room.client]);
  useEffect(() => {
    if (room.error === null) return;
    onLeft(room.error.code === 'UNREACHABLE' && !joined.current ? serverUnreachable() : problemOfEnd(room.error));
  }, [room.error, onLeft]);
  useEffect(() => {
    document.title = `${roomId} – Bloom`;
  }, [roomId]);
  const [copied, setCopied] = useState<string | null>(null);

  const inviting = invite !== undefined && (
    <IconButton icon="link" text="Copy invite link" onClick={() => void copy(invite).then(setCopied)} />
  );
  return (
    <RoomProvider room={room}>
      <CallView
        title={roomId}
        name={name}
        media={media}
        encrypted={encryption !== undefined}
        actions={
          <>
            {actions}
            {inviting}
          </>
        }
        notices={
          <>
            {notices}
            {copied !== null && (
              <Notice kind="info" onDismiss={() => setCopied(null)}>
                {copied}
              </Notice>
            )}
          </>
        }
        {...(invite === undefined
          ? {}
          : { alone: 'Nobody else is here yet. Open this page in a second tab, or send someone the invite link.' })}
      />
    </RoomProvider>
  );
}

/** Puts a link into the clipboard. Returns a sentence about where it is. */
async function copy(create: () => Promise<string>): Promise<string> {
  let link: string;
  try {
    link = await create();
  } catch (error) {
    return `The link could not be created: ${error instanceof Error ? error.message : String(error)}`;
  }
  try {
    await navigator.clipboard.writeText(link);
    return 'The link is in the clipboard. It admits guests for one day.';
  } catch {
    return `The browser did not let it be copied; here it is: ${link}`;
  }
}
