import type { Problem } from '../platform/problems.ts';
import { environmentName, type Settings } from './settings.ts';
import { nearestName } from './suggestion.ts';

const PREFIX = 'TOKEN_SIDECAR_';

/** Variables that Kubernetes sets for a Service whose name begins like ours: `TOKEN_SIDECAR_PORT_443_TCP_ADDR`. */
const OF_SERVICES =
  /^TOKEN_SIDECAR_(?:[A-Z0-9_]+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;

/** Variables that look like settings of a command but are none: misspelt, or meant for another command. */
export function unknownVariables(
  settings: Settings,
  env: Readonly<Record<string, string | undefined>>,
): Problem[] {
  const known = Object.keys(settings).map(environmentName);
  const names = Object.keys(env).filter(
    (name) => name.startsWith(PREFIX) && env[name] !== '' && !known.includes(name) && !OF_SERVICES.test(name),
  );
  return names.sort().map((name) => {
    // Without the prefix that all names share, which would make them all alike.
    const own = name.slice(PREFIX.length);
    const nearest = nearestName(
      own,
      known.map((one) => one.slice(PREFIX.length)),
    );
    const problem = { key: name, code: 'unknown_variable' as const };
    if (nearest === undefined) return { ...problem, expected: 'a variable that this command has' };
    return {
      ...problem,
      expected: `a variable that this command has; did you mean "${PREFIX}${nearest}"?`,
      remedy: `Write ${PREFIX}${nearest} if that is what you mean.`,
      meant: PREFIX + nearest,
    };
  });
}
