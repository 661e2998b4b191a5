import { templateFault } from './profile.ts';
import { maxNameLength, patternFault, type UsernameComparison, type UsernameRules } from './usernames.ts';

/** An organization's settings for its profiles. */
export interface OrganizationSettings extends UsernameRules {
  comparison: UsernameComparison;
  /** Makes the URLs of objects that are not in the organization's catalogue. */
  objectImageUrlTemplate?: string | undefined;
  /** Whether a referenced object must be in the user's collection. */
  requireOwnership: boolean;
}

/** The settings of an organization for which nothing was set. */
export const defaultSettings: OrganizationSettings = {
  minLength: 1,
  maxLength: 64,
  comparison: 'exact',
  requireOwnership: false,
};

/** Everything that is wrong with these settings, each as a sentence for the operator. */
export function settingsFaults(settings: OrganizationSettings): string[] {
  const faults: string[] = [];
  for (const [name, value] of [
    ['minimum', settings.minLength],
    ['maximum', settings.maxLength],
  ] as const) {
    if (!Number.isInteger(value) || value < 1 || value > maxNameLength) {
      faults.push(`the ${name} username length must be a whole number from 1 to ${maxNameLength}`);
    }
  }
  if (faults.length === 0 && settings.minLength > settings.maxLength) {
    faults.push(
      `the minimum username length (${settings.minLength}) is above the maximum (${settings.maxLength})`,
    );
  }
  const { pattern, objectImageUrlTemplate: template } = settings;
  const patternReason = pattern === undefined ? undefined : patternFault(pattern);
  if (patternReason !== undefined) {
    faults.push(`the username pattern is not a valid RE2 pattern: ${patternReason}`);
  }
  const templateReason = template === undefined ? undefined : templateFault(template);
  if (templateReason !== undefined) faults.push(`the object URL template ${templateReason}`);
  return faults;
}
