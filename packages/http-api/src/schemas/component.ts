import { COMPONENT_SCHEMAS, COMPONENT_TYPES, INVALID_STRUCTURE, MAX_ORIGINS } from '@bloom/rooms';
import { z } from 'zod';
import { Track } from './common.js';

/** Body of `POST /room/:id/component` as checked here; the rooms check the options after their own checks. */
export const AddComponentRequest = z.object({
  type: z.enum(COMPONENT_TYPES, {
    error: (issue) => (issue.input === undefined ? INVALID_STRUCTURE : 'Invalid component type'),
  }),
  options: z.unknown().optional(),
});

/** Body of `POST /room/:id/component` as documented. Options may be omitted where none is required. */
export const AddComponentDocument = z
  .union(
    COMPONENT_TYPES.map((type) => {
      const { options } = COMPONENT_SCHEMAS[type];

      return z.object({ type: z.literal(type), options: options.safeParse({}).success ? options.nullish() : options });
    }),
  )
  .meta({ id: 'AddComponentRequest', description: 'A new component' });

export const Component = z
  .union(
    COMPONENT_TYPES.map((type) => {
      const { name, properties } = COMPONENT_SCHEMAS[type];
      const id = z.string().meta({ description: 'Component id, a UUID' });

      return z
        .strictObject({ id, type: z.literal(type), properties, tracks: z.array(Track) })
        .meta({ id: `Component${name}`, description: `A component of the kind ${type}` });
    }),
  )
  .meta({ id: 'Component', description: 'A part of the room that the server runs' });

export const ComponentDetails = z
  .strictObject({ data: Component })
  .meta({ id: 'ComponentDetailsResponse', description: 'The component' });

/** Body of `PATCH /room/:id/component/:id`. */
export const UpdateComponentRequest = z
  .object({ paused: z.boolean().meta({ description: 'Pauses or resumes a recording' }) })
  .meta({ id: 'UpdateComponentRequest', description: 'Changes of a component' });

/** Characters of a peer or component id, several times those of a UUID. */
const MAX_ID = 255;
const tooLarge = { error: () => `Expected at most ${MAX_ORIGINS} origins of at most ${MAX_ID} characters` };

/** Body of `POST /room/:id/component/:id/subscribe`. */
export const SubscribeRequest = z
  .object({
    origins: z
      .array(z.string({ error: () => INVALID_STRUCTURE }).max(MAX_ID, tooLarge), { error: () => INVALID_STRUCTURE })
      .max(MAX_ORIGINS, tooLarge)
      .meta({ description: 'Ids of peers and components whose tracks, now and later, are wanted' }),
  })
  .meta({ id: 'SubscriptionConfig', description: 'What to subscribe to' });

/** Body of `POST /sip/:room_id/:component_id/call`. */
export const DialRequest = z
  .object({
    phoneNumber: z
      .string({ error: () => INVALID_STRUCTURE })
      .meta({ description: 'Number to call', examples: ['+48 123-456-789'] }),
  })
  .meta({ id: 'DialConfig', description: 'Whom to call' });
