import { type Device, type DeviceKind, listDevices, watchDevices } from '@bloom/client';
import { useEffect, useState } from 'react';

/** Returns the machine's cameras or microphones, and follows as they are plugged in and out. */
export function useDevices(kind: DeviceKind): readonly Device[] {
  const [devices, setDevices] = useState<readonly Device[]>([]);
  useEffect(() => {
    let mounted = true;
    const update = (found: readonly Device[]): void => {
      if (mounted) setDevices(found);
    };
    void listDevices().then(update);
    const stop = watchDevices(update);
    return () => {
      mounted = false;
      stop();
    };
  }, []);
  return devices.filter((device) => device.kind === kind);
}
