import { SidecarError } from '../../platform/errors.ts';
import type { DestinationRule } from './admission-rules.ts';
import { keepsOwn } from './own-identity.ts';

/**
 * Refuses a request whose placeholder would leave unswapped: it belongs to another host, or stands in a field where it
 * is not swapped. Tunnels are exempt: the proxy cannot see what they carry.
 */
export function strayPlaceholders(placeholders: readonly string[]): DestinationRule {
  return (request, { route, tunnel }) => {
    if (tunnel) return;
    const { fields } = request;
    for (let at = 0; at < fields.length; at += 2) {
      const name = fields[at] as string;
      const value = fields[at + 1] as string;
      const text = placeholders.find((placeholder) => value.includes(placeholder));
      if (text === undefined) continue;
      const isSwapped = route.placement?.swapped(name, value, '') !== undefined;
      if (isSwapped && !keepsOwn(route, request)) continue;
      throw new SidecarError(
        'placeholder_not_allowed',
        `route ${route.config.name} does not swap the placeholder ${text} where the request has it`,
      );
    }
  };
}
