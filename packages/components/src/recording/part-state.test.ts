import { describe, expect, test } from '@jest/globals';
import { extentOf, judgePart, type PartEvidence } from './part-state.js';
import type { RecordingReport, TrackReport } from './report.js';

const draft: RecordingReport = { recording_id: 'kitchen', start_time: '', tracks: {} };
const mark = { bucket: 'calls', prefix: '', uploadingSince: null, draft: null };

/** What a node finds that has no part in progress, and credentials for the bucket `calls`. */
function found(more: Partial<PartEvidence>): PartEvidence {
  return {
    here: undefined,
    isUploaded: false,
    failure: undefined,
    mark: undefined,
    isAlive: false,
    hasReport: false,
    ownBucket: 'calls',
    ...more,
  };
}

describe('the state of a recording', () => {
  test.each<[string, Partial<PartEvidence>, string]>([
    ['while it is recorded', { here: 'recording', mark: { ...mark, draft } }, 'recording'],
    ['before its mark is written', { here: 'recording' }, 'recording'],
    ['while another node records it', { mark: { ...mark, draft }, isAlive: true }, 'recording'],
    ['after a kill during the recording', { mark: { ...mark, draft } }, 'finished'],
    ['after a kill between the report and the upload', { mark: { ...mark, draft }, hasReport: true }, 'uploading'],
    ['while it is uploaded', { here: 'uploading', mark, hasReport: true }, 'uploading'],
    ['while another node uploads it', { mark, hasReport: true, isAlive: true }, 'uploading'],
    ['after a kill during the upload', { mark, hasReport: true }, 'uploading'],
    ['after a kill between the last object and the removal of the files', { mark, isUploaded: true }, 'uploaded'],
    ['after the removal of its files', { isUploaded: true }, 'uploaded'],
    ['after its upload was given up on', { failure: 'down', hasReport: true }, 'failed'],
    ['without a mark, as on a full disk', { hasReport: true }, 'finished'],
    ['without mark and report', {}, 'failed'],
    ['after a kill, with credentials of the request', { mark: { ...mark, byRequest: true } }, 'failed'],
    ['with credentials of the request', { mark: { ...mark, byRequest: true }, isAlive: true }, 'uploading'],
    ['after a kill, for another bucket', { mark: { ...mark, bucket: 'other' }, hasReport: true }, 'failed'],
    ['after a kill, on a node without credentials', { mark, ownBucket: undefined }, 'failed'],
  ])('%s is as the disk says', (_when, evidence, state) => {
    const judged = judgePart(found(evidence));
    expect(judged.state).toBe(state);
    expect(judged.reason === undefined).toBe(state !== 'failed');
  });
});

describe('the extent of a recording', () => {
  const track = { offset: 1.5e9, start_timestamp: 1_000, end_timestamp: 97_000, clock_rate: 48_000 } as TrackReport;

  test('reaches to the end of its last track', () => {
    expect(extentOf({ tracks: { a: track, b: { ...track, offset: 0 } } })).toEqual({ tracks: 2, seconds: 3.5 });
    expect(extentOf({ tracks: {} })).toEqual({ tracks: 0, seconds: 0 });
  });

  test('ignores what is no track', () => {
    const damaged = JSON.parse('{"a": null, "b": 1}') as Record<string, TrackReport>;
    expect(extentOf({ tracks: { ...damaged, c: track } })).toEqual({ tracks: 3, seconds: 3.5 });
  });

  test('ignores what is no number', () => {
    expect(extentOf({ tracks: { a: { ...track, clock_rate: 0 }, b: {} as TrackReport } })).toEqual({
      tracks: 2,
      seconds: 0,
    });
  });
});
