import { z } from 'zod';

/** The kinds of participants, as tokens spell them. */
export const KINDS = ['standard', 'ingress', 'egress', 'sip', 'agent', 'connector', 'bridge'] as const;
export type ParticipantKind = (typeof KINDS)[number];

/** The sources of tracks, as tokens spell them. */
export const SOURCES = ['camera', 'microphone', 'screen_share', 'screen_share_audio'] as const;
export type SourceName = (typeof SOURCES)[number];

const flag = z.boolean().nullish();
const label = z.string().nullish();

/** The claims that a token may carry. Unknown ones are ignored. */
export const CLAIMS = z.object({
  iss: z.string(),
  exp: z.number(),
  nbf: z.number().nullish(),
  sub: label,
  name: label,
  metadata: label,
  attributes: z.record(z.string(), z.string()).nullish(),
  kind: z.enum(KINDS).nullish(),
  roomConfig: z.record(z.string(), z.unknown()).nullish(),
  video: z
    .object({
      room: label,
      roomJoin: flag,
      roomCreate: flag,
      roomList: flag,
      roomAdmin: flag,
      roomRecord: flag,
      ingressAdmin: flag,
      canPublish: flag,
      canSubscribe: flag,
      canPublishData: flag,
      canPublishSources: z.array(z.string().max(64)).max(16).nullish(),
      canUpdateOwnMetadata: flag,
      hidden: flag,
      recorder: flag,
      agent: flag,
    })
    .nullish(),
});

export type Claims = z.infer<typeof CLAIMS>;

/** What a participant may do, with the defaults of absent claims applied. */
export interface Grants {
  canPublish: boolean;
  canSubscribe: boolean;
  canPublishData: boolean;
  /** Empty: all. */
  canPublishSources: readonly SourceName[];
  canUpdateOwnMetadata: boolean;
  /** Others do not see the participant. */
  hidden: boolean;
}

export function grantsOf({ video }: Claims): Grants {
  const { canPublish, canSubscribe, canPublishData, canPublishSources, canUpdateOwnMetadata, hidden } = video ?? {};
  const publishes = canPublish ?? true;
  const sources = SOURCES.filter((source) => canPublishSources?.includes(source) === true);
  // An empty list permits all sources, but one of unknown sources permits none.
  const isEmpty = canPublishSources === undefined || canPublishSources === null || canPublishSources.length === 0;

  return {
    canPublish: publishes && (isEmpty || sources.length > 0),
    canSubscribe: canSubscribe ?? true,
    canPublishData: canPublishData ?? publishes,
    canPublishSources: sources,
    canUpdateOwnMetadata: canUpdateOwnMetadata ?? false,
    hidden: hidden ?? false,
  };
}

/** Returns the kind of a participant; `recorder` and `agent` are old spellings. */
export function kindOf({ kind, video }: Claims): ParticipantKind {
  if (kind !== undefined && kind !== null) return kind;
  if (video?.recorder === true) return 'egress';

  return video?.agent === true ? 'agent' : 'standard';
}

/** Returns true if one token grants at least what another one does, to a participant of the same kind. */
export function grantsAtLeast(claims: Claims, others: Claims): boolean {
  const granted = grantedBy(claims);

  return kindOf(claims) === kindOf(others) && [...grantedBy(others)].every((name) => granted.has(name));
}

/** Returns the names of all that a token grants: its flags, and the sources that may be published. */
function grantedBy(claims: Claims): ReadonlySet<string> {
  const grants = grantsOf(claims);
  const flags = Object.entries({ ...claims.video, ...grants }).filter(([, value]) => value === true);
  const sources = grants.canPublishSources.length === 0 ? SOURCES : grants.canPublishSources;

  return new Set([...flags.map(([name]) => name), ...(grants.canPublish ? sources : [])]);
}

/** Returns the kinds of tracks that the grants allow, as Bloom's permissions name them. */
export function publishKinds(grants: Grants): ('audio' | 'video' | 'data')[] {
  const { canPublish, canPublishData, canPublishSources: sources } = grants;
  const allows = (...names: SourceName[]) =>
    canPublish && (sources.length === 0 || names.some((name) => sources.includes(name)));

  return [
    ...(allows('microphone', 'screen_share_audio') ? (['audio'] as const) : []),
    ...(allows('camera', 'screen_share') ? (['video'] as const) : []),
    ...(canPublishData ? (['data'] as const) : []),
  ];
}
