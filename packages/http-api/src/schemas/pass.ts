import { INVALID_STRUCTURE, MAX_PASS_TTL, Permissions } from '@bloom/rooms';
import { z } from 'zod';
import { shown } from './common.js';

const badTtl = {
  error: ({ input }: { input?: unknown }) =>
    `Expected ttl to be a number of seconds from 1 to ${MAX_PASS_TTL}, got: ${shown(input)}`,
};

const ttl = z
  .int(badTtl)
  .min(1, badTtl)
  .max(MAX_PASS_TTL, badTtl)
  .nullish()
  .meta({ description: 'Seconds for which the token is valid; default 86400' });

const expiresAt = z.number().meta({ description: 'When the token expires, milliseconds since the epoch' });

/** Body of `POST /room/:id/viewer`, which is optional. */
export const ViewerRequest = z
  .object({ ttl })
  .meta({ id: 'ViewerRequest', description: 'How long a viewer may watch' });

export const ViewerCreated = z
  .strictObject({
    data: z.strictObject({
      token: z.string().meta({ description: 'Opens the stream and the recordings of this room, and nothing else' }),
      hls_url: z.string().meta({
        description: 'Playlist of the stream, with the token in its path',
        examples: ['http://localhost:5002/hls/webinar/~WyJ3.../index.m3u8'],
      }),
      expires_at: expiresAt,
    }),
  })
  .meta({ id: 'ViewerResponse', description: 'What a viewer needs' });

const MAX_NAME = 100;
const MAX_USES = 1_000_000;
/** Longer than any token. */
const MAX_TOKEN = 4_096;
const badName = { error: () => `Expected name to have 1 to ${MAX_NAME} characters` };
const name = z.string(badName).min(1, badName).max(MAX_NAME, badName).nullish();
const badUses = {
  error: ({ input }: { input?: unknown }) => `Expected uses to be a number from 0 to ${MAX_USES}, got: ${shown(input)}`,
};

/** Body of `POST /room/:id/invitation`, which is optional. */
export const InvitationRequest = z
  .object({
    ttl,
    name: name.meta({ description: 'Name of the guests; without it they give their own' }),
    permissions: Permissions.nullish(),
    uses: z
      .int(badUses)
      .min(0, badUses)
      .max(MAX_USES, badUses)
      .nullish()
      .meta({ description: 'Number of guests; default 0: as many as the room takes' }),
  })
  .meta({ id: 'InvitationRequest', description: 'What guests may do' });

export const InvitationCreated = z
  .strictObject({
    data: z.strictObject({
      token: z.string().meta({ description: 'Admits guests by `POST /invitation`' }),
      url: z
        .string()
        .nullable()
        .meta({ description: 'Page for guests, with the token after the `#`; null where the node serves no page' }),
      expires_at: expiresAt,
    }),
  })
  .meta({ id: 'InvitationResponse', description: 'The invitation' });

const INVALID = { error: () => INVALID_STRUCTURE };

/** Body of `POST /invitation`. */
export const GuestRequest = z
  .object({
    token: z.string(INVALID).max(MAX_TOKEN, INVALID).meta({ description: 'The token of the invitation' }),
    name: name.meta({ description: 'What the guest is called, unless the invitation says it; default `Guest`' }),
  })
  .meta({ id: 'GuestRequest', description: 'A guest' });
