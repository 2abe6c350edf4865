import { OpenAPIRegistry, OpenApiGeneratorV31, type RouteConfig } from '@asteasolutions/zod-to-openapi';
import { z } from 'zod';
import { BODY_EXAMPLES } from './body-examples.js';
import type { AnswerBody } from './route.js';
import { MAX_BODY_BYTES, MAX_SDP_BYTES, type Route, ROUTES } from './routes.js';
import { ErrorBody } from './schemas/common.js';

export interface OpenApiOptions {
  /** Version of Bloom, semver. */
  version: string;
  /** `JF_PUBLIC_MEDIA_FILES` */
  publicMediaFiles: boolean;
}

/** An OpenAPI 3.1 document as plain JSON. */
export type OpenApiDocument = ReturnType<OpenApiGeneratorV31['generateDocument']>;

const SCHEMES = {
  authorization: { type: 'http', scheme: 'bearer', description: 'The API token, `JF_SERVER_API_TOKEN`' },
  viewer_token: {
    type: 'http',
    scheme: 'bearer',
    description:
      'The token of a viewer; for streams also that of a peer. Players without headers send it in the path, after a tilde: `/hls/{room_id}/~{token}/index.m3u8`',
  },
  peer_token: { type: 'http', scheme: 'bearer', description: 'The token that a peer was given' },
  invitation: { type: 'http', scheme: 'bearer', description: 'The token of an invitation' },
} as const;

const ENTITY_TAG = z
  .string()
  .meta({ description: 'The `etag` of the session, or `*` to restart ICE', examples: ['*'] });

type Responses = RouteConfig['responses'];

/** Returns the name of the security scheme that a route requires. */
function schemeOf({ auth }: Route, publicMediaFiles: boolean): keyof typeof SCHEMES | undefined {
  if (auth === 'peer') return 'peer_token';
  return auth === 'token' || auth === 'check' || (auth === 'file' && !publicMediaFiles) ? 'authorization' : undefined;
}

/** Returns the schemes accepted as alternatives. */
function otherSchemesOf({ auth }: Route): Partial<Record<keyof typeof SCHEMES, string[]>>[] {
  if (auth === 'check') return [{ peer_token: [] }, { invitation: [] }];
  return auth === 'file' ? [{ viewer_token: [] }] : [];
}

function responseOf(description: string, body: AnswerBody): Responses[string] {
  if (body === 'empty') return { description };
  if (body === 'text') return { description, content: { 'text/plain': { schema: z.string() } } };
  if (typeof body === 'string' && body !== 'file') return { description, content: { [body]: { schema: z.string() } } };
  if (body === 'file') {
    const schema = { type: 'string', format: 'binary' } as const;
    return { description, content: { 'application/vnd.apple.mpegurl': { schema }, 'video/mp4': { schema } } };
  }

  return { description, content: { 'application/json': { schema: body } } };
}

const UNKNOWN_FIELDS = z.object({
  'x-bloom-unknown-fields': z
    .string()
    .optional()
    .meta({
      description: 'Fields of the body that have no effect, at most 10, each with a similar known field in brackets',
      examples: ['persistant (persistent?)'],
    }),
});

function operationOf(route: Route, publicMediaFiles: boolean): RouteConfig {
  const scheme = schemeOf(route, publicMediaFiles);
  const params = [...route.path.matchAll(/:(\w+)/g)].map((match) => match[1] ?? '');
  const responses: Responses = {};

  for (const [status, { description, body }] of Object.entries(route.answers)) {
    const response = responseOf(description, body);
    const namesFields = route.body !== undefined && Number(status) < 300;
    responses[status] = namesFields ? { ...response, headers: UNKNOWN_FIELDS } : response;
  }
  if (params.length > 0) responses['400'] ??= responseOf('A part of the path cannot be decoded', ErrorBody);
  if (route.body !== undefined) {
    responses['413'] = responseOf(`The body has more than ${route.maxBodyBytes ?? MAX_BODY_BYTES} bytes`, ErrorBody);
  }
  if (route.textBody !== undefined) {
    responses['413'] = responseOf(`The body has more than ${MAX_SDP_BYTES} bytes`, ErrorBody);
    responses['415'] = responseOf(`The body is not ${route.textBody}`, ErrorBody);
  }
  if (scheme !== undefined) responses['401'] = responseOf('The token is missing or wrong', ErrorBody);
  else responses['503'] ??= responseOf('Too many requests without a token', ErrorBody);
  if (scheme === 'authorization') {
    responses['403'] = responseOf('A page of another site uses the public token `development`', ErrorBody);
  }

  return {
    method: route.method,
    path: route.path.replaceAll(/:(\w+)/g, '{$1}'),
    operationId: route.id,
    tags: [route.tag],
    summary: route.summary,
    security: scheme === undefined ? [] : [{ [scheme]: [] }, ...otherSchemesOf(route)],
    request: {
      ...(params.length === 0 ? {} : { params: stringParameters(params) }),
      ...(route.query === undefined ? {} : { query: queryParameters(route.query) }),
      ...(route.ifMatch === true ? { headers: z.object({ 'If-Match': ENTITY_TAG }) } : {}),
      ...(route.textBody === undefined
        ? {}
        : { body: { required: true, content: { [route.textBody]: { schema: z.string() } } } }),
      ...(route.body === undefined ? {} : { body: jsonBody(route.id, route.body) }),
    },
    responses,
  };
}

/** A body is required if `{}`, which a missing one counts as, is refused. */
function jsonBody(id: Route['id'], schema: z.ZodType) {
  const examples = Object.entries(BODY_EXAMPLES[id] ?? {}).map(([name, value]) => [name, { value }]);
  const content = { 'application/json': { schema, examples: Object.fromEntries(examples) } };

  return schema.safeParse({}).success ? { content } : { required: true, content };
}

function stringParameters(names: readonly string[]) {
  return z.object(Object.fromEntries(names.map((name) => [name, z.string()])));
}

function queryParameters(query: Readonly<Record<string, z.ZodType>>) {
  return z.object(Object.fromEntries(Object.entries(query).map(([name, schema]) => [name, schema.optional()])));
}

/** Builds the description of every route from the schemas that also validate requests. */
export function createOpenApiDocument({ version, publicMediaFiles }: OpenApiOptions): OpenApiDocument {
  const registry = new OpenAPIRegistry();

  for (const [name, scheme] of Object.entries(SCHEMES)) registry.registerComponent('securitySchemes', name, scheme);
  for (const route of ROUTES) registry.registerPath(operationOf(route, publicMediaFiles));

  return new OpenApiGeneratorV31(registry.definitions).generateDocument({
    openapi: '3.1.0',
    servers: [{ url: '/', description: 'The node that serves this document' }],
    info: {
      title: 'Bloom media server',
      version,
      description: 'Rooms, peers and components. Responses with 204 have no body; errors are `{"errors": "<text>"}`.',
      license: { name: 'Apache 2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
  });
}
