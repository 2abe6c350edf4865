import { fileKind, nativeInstalled, RecordingService, rtspKind, SipService } from '@bloom/components';
import type { Settings } from '@bloom/config';
import type { Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import type { Webhooks } from '@bloom/notifications';
import type { Processes } from '@bloom/processes';
import type { Notification } from '@bloom/protocol';
import type { ComponentKind } from '@bloom/rooms';
import { join } from 'node:path';

/** Opens the service that writes recordings, uploads and mixes them. */
export function openRecordings(
  { resourcesPath, recording }: Settings,
  parts: {
    log: Log;
    metrics: Metrics;
    publish: (event: Notification) => void;
    webhooks: Webhooks;
    processes: Processes;
  },
): RecordingService {
  const { log, metrics, publish, webhooks, processes } = parts;

  return new RecordingService({
    directory: join(resourcesPath, 'raw_recordings'),
    notesDirectory: join(resourcesPath, 'uploaded_recordings'),
    mixesDirectory: join(resourcesPath, 'mixed_recordings'),
    processes,
    s3: recording.s3,
    pathPrefix: recording.s3PathPrefix,
    endpoint: recording.s3Endpoint,
    log,
    onNews: ({ reason, ...part }) =>
      publish(
        reason === undefined ? { type: 'recordingUploaded', ...part } : { type: 'recordingFailed', ...part, reason },
      ),
    hold: (roomId) => webhooks.hold(roomId),
    onGivenUp: () => metrics.uploadAbandoned(),
  });
}

/** Opens the phone service of the rooms. Returns undefined unless `JF_SIP_USED` is set. */
export function openPhones({ sip }: Settings, processes: Processes): SipService | undefined {
  return sip === null ? undefined : new SipService({ processes, address: sip.ip });
}

/** Returns the component kinds that the configuration and the installed packages enable. */
export function builtInKinds(
  { resourcesPath, recording }: Settings,
  parts: { recordings: RecordingService; phones: SipService | undefined; processes: Processes },
): ComponentKind[] {
  const { recordings, phones, processes } = parts;
  const kinds = [fileKind({ sourcesDirectory: join(resourcesPath, 'file_component_sources') })];
  if (nativeInstalled()) kinds.push(rtspKind({ processes }));
  if (recording.enabled) kinds.push(recordings.kind);
  if (phones !== undefined) kinds.push(phones.kind);

  return kinds;
}
