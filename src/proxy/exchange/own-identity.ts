/** Whether an app brings an identity of its own, and whether it is kept. */

import { hasField } from '../http/fields.ts';
import type { ActiveRoute } from '../routing/active-route.ts';
import type { IncomingRequest } from '../streams/message.ts';

/** Whether the request has an identity where the token of this route goes, or in Authorization. */
export function showsOwn({ placement }: ActiveRoute, request: IncomingRequest): boolean {
  return placement === undefined ? hasField(request.fields, 'authorization') : placement.isShownOwn(request);
}

/** Whether the request is sent with its own identity instead of a token. */
export function keepsOwn(route: ActiveRoute, request: IncomingRequest): boolean {
  return route.config.existingAuthorization === 'keep' && showsOwn(route, request);
}
