/* Fields as other programs call them: a person who comes from there is told our name. */
#ifndef JURY_SPEC_ALIAS_H
#define JURY_SPEC_ALIAS_H

/* Our name of what a peer's field does ("healthyThreshold" for "rise"), or NULL. Case and `-`, `_`
 * are no difference. Whether the field is of the table at hand is the caller's to look up. */
const char *spec_alias(const char *word);

#endif
