import { SidecarError } from '../../errors.ts';
import type { DestinationRule } from './admission-rules.ts';
import { keepsOwn } from './own-identity.ts';

/**
 * Refuses a request with a placeholder that would leave as it is: it is for another host, or stands in another field than
 * the one in which it is swapped. What a tunnel carries is nobody's to see.
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
