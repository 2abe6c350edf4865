import type { Metrics } from '@bloom/metrics';
import type { Notification } from '@bloom/protocol';
import type { NotificationBus } from './bus.js';

type RoomMetrics = Pick<
  Metrics,
  'roomCreated' | 'roomRemoved' | 'peerAdded' | 'peerRemoved' | 'peerConnected' | 'peerDisconnected' | 'peerCrashed'
>;

function countNotification(metrics: RoomMetrics, notification: Notification): void {
  switch (notification.type) {
    case 'roomCreated':
      return metrics.roomCreated(notification.roomId);
    case 'roomDeleted':
    case 'roomCrashed':
      return metrics.roomRemoved(notification.roomId);
    case 'peerAdded':
      return metrics.peerAdded(notification.roomId);
    case 'peerDeleted':
      return metrics.peerRemoved(notification.roomId);
    case 'peerConnected':
      return metrics.peerConnected(notification.roomId);
    case 'peerDisconnected':
      return metrics.peerDisconnected(notification.roomId);
    case 'peerCrashed':
      metrics.peerCrashed(notification.roomId);
      return metrics.peerRemoved(notification.roomId);
    default:
  }
}

/**
 * Updates the room metrics of this node as its events are published. Use either this function or the methods of
 * `Metrics`, not both.
 */
export function countNotifications(bus: NotificationBus, metrics: RoomMetrics): () => void {
  return bus.subscribe((envelope) => {
    if (envelope.kind === 'notification' && envelope.source === 'local')
      countNotification(metrics, envelope.notification);
  });
}
