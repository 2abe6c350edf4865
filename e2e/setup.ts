// Runs before each end-to-end file. Only files that need real time on a shared machine may retry a test, and only in
// the full run, which then lists it as FLAKY (scripts/test.mjs).
import { jest } from '@jest/globals';

if (process.env['BLOOM_SECOND_TRY']) jest.retryTimes(1, { logErrorsBeforeRetry: true });
