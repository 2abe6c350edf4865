import { ConfigError } from './errors.js';
import { bool, httpUrl, integer, listOf, text } from './grammar.js';
import { variable } from './variable.js';

const SECONDS = integer(1, 2_147_483, ' (seconds)');
/** Secrets shorter than this can be guessed. */
export const MIN_LIVEKIT_SECRET = 32;

/** The variables of the LiveKit face (docs/reference/livekit.md). */
export const LIVEKIT_VARIABLES = {
  livekitKeys: variable({
    name: 'JF_LIVEKIT_KEYS',
    section: 'LiveKit',
    // Blanks and line ends are part of a list's syntax, so only its loader removes them.
    grammar: { ...text, trims: true },
    fallback: null,
    fallbackDoc: 'none: LiveKit clients are not served',
    secret: true,
    doc: "API keys of LiveKit's clients and server SDKs with their secrets, `key: secret` in each line or between commas. The first one signs what the server signs. Equal on all nodes.",
  }),
  livekitAutoCreate: variable({
    name: 'JF_LIVEKIT_AUTO_CREATE',
    section: 'LiveKit',
    grammar: bool,
    fallback: 'true',
    doc: 'Whether a join creates the room that it names, if there is none.',
  }),
  livekitEmptyTimeout: variable({
    name: 'JF_LIVEKIT_EMPTY_TIMEOUT',
    section: 'LiveKit',
    grammar: SECONDS,
    fallback: '300',
    doc: 'Seconds that a room created by `CreateRoom` lasts without participants, unless the call says otherwise.',
  }),
  livekitDepartureTimeout: variable({
    name: 'JF_LIVEKIT_DEPARTURE_TIMEOUT',
    section: 'LiveKit',
    grammar: SECONDS,
    fallback: '20',
    doc: 'Seconds after which a room that a join has created ends when the last participant has left, unless the token says otherwise.',
  }),
  livekitMaxParticipants: variable({
    name: 'JF_LIVEKIT_MAX_PARTICIPANTS',
    section: 'LiveKit',
    grammar: integer(0, 2_147_483_647),
    fallback: '0',
    doc: 'Most participants in a room that a join or `CreateRoom` creates, unless the token or the call says otherwise; 0 = no limit.',
  }),
  livekitRemoteUnmute: variable({
    name: 'JF_LIVEKIT_REMOTE_UNMUTE',
    section: 'LiveKit',
    grammar: bool,
    fallback: 'false',
    doc: 'Whether `MutePublishedTrack` may unmute a track, which people may not expect.',
  }),
  livekitWebhookUrls: variable({
    name: 'JF_LIVEKIT_WEBHOOK_URLS',
    section: 'LiveKit',
    grammar: listOf(httpUrl),
    fallback: null,
    fallbackDoc: "none: LiveKit's webhooks are not sent",
    doc: "URLs, separated by blanks, to which LiveKit's webhooks are posted for all rooms; operators see them. Equal on all nodes.",
  }),
  livekitWebhookKey: variable({
    name: 'JF_LIVEKIT_WEBHOOK_KEY',
    section: 'LiveKit',
    grammar: text,
    fallback: null,
    fallbackDoc: 'the first key',
    doc: "The key of `JF_LIVEKIT_KEYS` that signs LiveKit's webhooks.",
  }),
} as const;

/** An API key with its secret. */
export interface LivekitKey {
  key: string;
  secret: string;
}

/**
 * Parses `key: secret` pairs, one a line or between commas.
 * @throws ConfigError naming the line, never the secret
 */
export function parseLivekitKeys(value: string): LivekitKey[] {
  const keys: LivekitKey[] = [];
  const fail = (at: number, what: string): never => {
    throw new ConfigError('JF_LIVEKIT_KEYS', `JF_LIVEKIT_KEYS is not valid: pair ${at} ${what}`);
  };
  const pairs = value.split(/[\n,]/).filter((pair) => pair.trim() !== '');
  for (const [index, pair] of pairs.entries()) {
    const colon = pair.indexOf(':');
    if (colon < 0) fail(index + 1, 'has no colon between key and secret');
    const key = pair.slice(0, colon).trim();
    const secret = pair.slice(colon + 1).trim();
    if (key === '' || secret === '') fail(index + 1, `has an empty ${key === '' ? 'key' : 'secret'}`);
    if (keys.some((other) => other.key === key)) fail(index + 1, 'has the key of an earlier one');
    keys.push({ key, secret });
  }
  if (keys.length === 0) fail(1, 'is missing');

  return keys;
}
