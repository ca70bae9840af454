/** Whether an app says by itself who it is, and whether that is left as it is. */

import { hasField } from '../http/fields.ts';
import type { ActiveRoute } from '../routing/active-route.ts';
import type { IncomingRequest } from '../streams/message.ts';

/** Whether the request has an identity where the token of this route goes, or in Authorization. */
export function showsOwn({ placement }: ActiveRoute, request: IncomingRequest): boolean {
  return placement === undefined ? hasField(request.fields, 'authorization') : placement.isShownOwn(request);
}

/** Whether the request goes out with that in place of a token. */
export function keepsOwn(route: ActiveRoute, request: IncomingRequest): boolean {
  return route.config.existingAuthorization === 'keep' && showsOwn(route, request);
}
