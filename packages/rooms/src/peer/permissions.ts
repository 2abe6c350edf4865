import type { PeerPermissions, PermissionChanges, PublishKind } from '../room-service.js';

export const defaultPermissions: PeerPermissions = { publish: true, subscribe: true, metadata: true };

/** Returns the permissions with the changes applied. */
export function mergePermissions(before: PeerPermissions, changes: PermissionChanges): PeerPermissions {
  return {
    publish: changes.publish ?? before.publish,
    subscribe: changes.subscribe ?? before.subscribe,
    metadata: changes.metadata ?? before.metadata,
  };
}

export function mayPublish({ publish }: PeerPermissions, kind: PublishKind): boolean {
  return typeof publish === 'boolean' ? publish : publish.includes(kind);
}
