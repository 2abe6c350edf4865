import { usePeers } from '@bloom/react';
import { IconButton } from '@bloom/react/kit';
import { startRecording } from '../room.js';
import { useSession } from '../session.js';
import type { Action } from '../ui/use-action.js';

export interface RecordButtonProps {
  readonly roomId: string;
  /** Its failures are shown by whoever shows the button. */
  readonly action: Action;
}

/** Starts the recording of a room, or ends the one that anybody has started. Must be below a `RoomProvider`. */
export function RecordButton({ roomId, action }: RecordButtonProps) {
  const { api } = useSession();
  const recording = usePeers().find(({ type }) => type === 'recording');
  const toggle = (): Promise<unknown> =>
    recording === undefined ? startRecording(api, roomId) : api.deleteComponent(roomId, recording.id);

  return (
    <IconButton
      icon="record"
      text={recording === undefined ? 'Record' : 'Stop recording'}
      aria-disabled={action.busy}
      onClick={() => void action.run(toggle)}
    />
  );
}
