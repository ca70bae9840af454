import { ownText } from './own-text.ts';
import { splitAbsoluteTarget, type TargetForm } from './target-form.ts';

/** The most characters of a path that are shown; the rest is cut off. */
const LONGEST = 1024;

/**
 * The path of a request as logs and traces may show it: without its query, where secrets travel, cut to a useful
 * length, and in memory of its own. Empty for a target that has none.
 */
export function shownPath({ target, targetForm }: { target: string; targetForm: TargetForm }): string {
  if (targetForm === 'authority') return '';
  const whole = targetForm === 'absolute' ? (splitAbsoluteTarget(target)?.pathAndQuery ?? '') : target;
  const end = whole.search(/[?#]/);
  return ownText(whole.slice(0, Math.min(LONGEST, end === -1 ? whole.length : end)));
}
