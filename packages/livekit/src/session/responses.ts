import {
  type AddTrackRequest,
  type DisconnectReason,
  LeaveRequest,
  LeaveRequest_Action,
  MediaSectionsRequirement,
  type PublishDataTrackRequest,
  RequestResponse,
  RequestResponse_Reason,
  type SignalResponse,
  SpeakerInfo,
  SpeakersChanged,
  SubscribedCodec,
  SubscribedQuality,
  SubscribedQualityUpdate,
} from '@livekit/protocol';
import type { Variant } from '@bloom/sfu';
import { LAYERS } from './track-info.js';

export type Message = SignalResponse['message'];

/** The room's media plane tells speech from silence and nothing else. */
const SPEECH_LEVEL = 0.5;

export const REFUSALS = {
  notAllowed: RequestResponse_Reason.NOT_ALLOWED,
  limitExceeded: RequestResponse_Reason.LIMIT_EXCEEDED,
  invalid: RequestResponse_Reason.INVALID_REQUEST,
} as const;

/** Returns the answer to a request, which it repeats. */
export function respond(
  reason: RequestResponse_Reason,
  message: string,
  rest: { requestId?: number; request: RequestResponse['request'] },
): Message {
  return { case: 'requestResponse', value: new RequestResponse({ reason, message, ...rest }) };
}

export function refusedTrack(request: AddTrackRequest, reason: RequestResponse_Reason, message: string): Message {
  return respond(reason, message, { request: { case: 'addTrack', value: request } });
}

export function refusedDataTrack(value: PublishDataTrackRequest): Message {
  const request = { case: 'publishDataTrack', value } as const;

  return respond(RequestResponse_Reason.UNSUPPORTED_TYPE, 'data tracks are not supported', { request });
}

/** Asks for an offer with this many more sections in which the client receives. */
export function sectionsWanted(numAudios: number, numVideos: number): Message {
  return { case: 'mediaSectionsRequirement', value: new MediaSectionsRequirement({ numAudios, numVideos }) };
}

export function leave(reason: DisconnectReason, action: LeaveRequest_Action): Message {
  const canReconnect = action !== LeaveRequest_Action.DISCONNECT;

  return { case: 'leave', value: new LeaveRequest({ reason, action, canReconnect }) };
}

/** Tells the client which layers of its track anybody needs: those up to the highest. */
export function layersNeeded({
  sid,
  codec,
  highest,
}: {
  sid: string;
  codec: string;
  highest: Variant | null;
}): Message {
  const qualities = LAYERS.map(
    ([variant, quality]) =>
      new SubscribedQuality({ quality, enabled: highest !== null && rank(variant) <= rank(highest) }),
  );
  const value = new SubscribedQualityUpdate({
    trackSid: sid,
    subscribedQualities: qualities,
    subscribedCodecs: [new SubscribedCodec({ codec, qualities })],
  });

  return { case: 'subscribedQualityUpdate', value };
}

function rank(variant: Variant): number {
  return LAYERS.findIndex(([each]) => each === variant);
}

export function speaks(sid: string, active: boolean): Message {
  const speaker = new SpeakerInfo({ sid, active, level: active ? SPEECH_LEVEL : 0 });

  return { case: 'speakersChanged', value: new SpeakersChanged({ speakers: [speaker] }) };
}
