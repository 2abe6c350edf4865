import { RequestResponse_Reason, type UpdateParticipantMetadata } from '@livekit/protocol';
import { LivekitError } from '../errors.js';
import type { Grants } from '../grants.js';
import type { ParticipantRecord } from '../record.js';
import { type Message, respond } from './responses.js';
import { TickedAllowance } from './ticked-allowance.js';

const MAX_NAME_BYTES = 256;
const MAX_METADATA_BYTES = 64 * 1024;
const MAX_ATTRIBUTES = 128;
/** Size of the whole record as JSON, as for the backend's metadata of any peer. */
const MAX_RECORD_BYTES = 64 * 1024;

/** Bytes of changes that all others are sent. Each change costs the size of the record. */
const BYTES = { burst: 256 * 1024, perSecond: 32 * 1024 };
const MIN_COST_BYTES = 1024;

/** Changes of a record: empty texts keep a value, an empty attribute removes it. */
export type RecordChanges = Pick<UpdateParticipantMetadata, 'name' | 'metadata' | 'attributes'>;

/**
 * Returns the record with these changes.
 * @throws LivekitError INVALID when a limit is exceeded
 */
export function applyUpdate(
  record: ParticipantRecord,
  { name, metadata, attributes }: RecordChanges,
): ParticipantRecord {
  const merged = Object.entries({ ...record.attributes, ...attributes }).filter(([, value]) => value !== '');
  const changed: ParticipantRecord = {
    ...record,
    name: name === '' ? record.name : name,
    metadata: metadata === '' ? record.metadata : metadata,
    // Do not assign: a client may use the key __proto__.
    attributes: Object.fromEntries(merged),
  };
  checkRecord(changed);

  return changed;
}

/** Fields of a record that its participant may change. */
export type OwnFields = Partial<Pick<ParticipantRecord, 'name' | 'metadata' | 'attributes'>>;

/**
 * Returns the fields of the record that the changes replace. The others may be out of date when these arrive.
 * @throws LivekitError INVALID when a limit is exceeded
 */
export function changedFields(record: ParticipantRecord, changes: RecordChanges): OwnFields {
  const { name, metadata, attributes } = applyUpdate(record, changes);

  return {
    ...(changes.name === '' ? {} : { name }),
    ...(changes.metadata === '' ? {} : { metadata }),
    ...(Object.keys(changes.attributes).length === 0 ? {} : { attributes }),
  };
}

/** What becomes of a client's change of its own record. */
export interface UpdateOutcome {
  /** Undefined for older clients, which expect none for a change that is carried out. */
  answer?: Message;
  /** What to change; undefined for a refused change. */
  fields?: OwnFields;
}

/** Decides about the changes that a client makes to its own record, and limits their rate. */
export class OwnUpdates {
  readonly bytes = new TickedAllowance(BYTES);

  admit(
    update: UpdateParticipantMetadata,
    { grants, record, protocol }: { grants: Grants; record: ParticipantRecord; protocol: number },
  ): UpdateOutcome {
    const answer = (reason: RequestResponse_Reason, message: string): Message =>
      respond(reason, message, { requestId: update.requestId, request: { case: 'updateMetadata', value: update } });
    if (!grants.canUpdateOwnMetadata) {
      return { answer: answer(RequestResponse_Reason.NOT_ALLOWED, 'this participant may not change its metadata') };
    }
    if (this.bytes.left <= 0) return { answer: answer(RequestResponse_Reason.LIMIT_EXCEEDED, 'too many changes') };
    try {
      const fields = changedFields(record, update);
      const size = Buffer.byteLength(JSON.stringify({ ...record, ...fields }));
      this.bytes.spend(Math.max(MIN_COST_BYTES, size));

      return { fields, ...(protocol < 15 ? {} : { answer: answer(RequestResponse_Reason.OK, '') }) };
    } catch (error) {
      if (!(error instanceof LivekitError)) throw error;
      return { answer: answer(RequestResponse_Reason.LIMIT_EXCEEDED, error.message) };
    }
  }
}

/** @throws LivekitError INVALID when a field of the record, or all of it, exceeds its limit */
export function checkRecord(record: ParticipantRecord): void {
  const { name, metadata, attributes } = record;
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) throw tooLong('name', MAX_NAME_BYTES);
  if (Buffer.byteLength(metadata) > MAX_METADATA_BYTES) throw tooLong('metadata', MAX_METADATA_BYTES);
  const count = Object.keys(attributes).length;
  if (count > MAX_ATTRIBUTES)
    throw new LivekitError('INVALID', `a participant may have at most ${MAX_ATTRIBUTES} attributes`);
  if (Buffer.byteLength(JSON.stringify(record)) > MAX_RECORD_BYTES) {
    throw tooLong('name, metadata and attributes', MAX_RECORD_BYTES);
  }
}

function tooLong(what: string, bytes: number): LivekitError {
  return new LivekitError('INVALID', `the ${what} of a participant may have at most ${bytes} bytes`);
}
