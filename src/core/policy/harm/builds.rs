//! Maven and Gradle.

use super::{Harm, at_words, has_short, has_word, is_one_of_long};
use crate::core::policy::shell::Word;

/// Properties that only choose or skip tests and checks; their values are plain words.
const PROPERTIES: &str = "skipTests maven.test.skip skipITs test it.test failIfNoTests surefire.failIfNoSpecifiedTests \
    checkstyle.skip spotbugs.skip maven.javadoc.skip enforcer.skip jacoco.skip spotless.check.skip style.color includes \
    excludes groups excludedGroups verbose trimStackTrace maven.test.failure.ignore spring.profiles.active";

/// Words of Maven that begin with the letter of another option: they choose modules and how to go on after a failure.
const MAVEN_WORDS: &str = "-pl -ntp";

/// The prefixes of well-known plugins. Others are looked up by their name, and any one may run a program.
const PLUGINS: &str = "dependency versions help surefire failsafe compiler spring-boot checkstyle spotless jacoco site javadoc source \
    jar clean install resources enforcer pmd spotbugs formatter quarkus micronaut war shade";

/// Options that obey another file, and goals of plugins that the project does not name.
pub fn harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str = "--init-script --build-file --settings-file --file --settings --project-dir --include-build \
        --gradle-user-home --project-cache-dir --gradle-distribution-url --gradle-version --global-settings --toolchains \
        --system-prop --project-prop --define --global-toolchains";
    let is_maven = words.first().is_some_and(|name| name.text.contains("mvn"));
    let harmful = |word: &str| {
        let is_option = has_short(word, "IbcfPsDpgt", "") || is_one_of_long(word, LONG);
        let is_plain = is_plain_property(word) || is_maven && chooses_parts(word);
        is_option && !is_plain || is_maven && is_foreign_goal(word)
    };
    at_words(words, harmful)
        .map(|(at, word)| {
            Harm::at(
                at,
                format!("`{word}` may run another program or obey another file"),
            )
        })
        .collect()
}

/// Modules and profiles of the project: `-pl`, `-Pdev`.
fn chooses_parts(word: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.,-!+".contains(&byte);
    let is_profile = |names: &str| !names.is_empty() && names.bytes().all(is_name);
    has_word(MAVEN_WORDS, word) || word.strip_prefix("-P").is_some_and(is_profile)
}

fn is_plain_property(word: &str) -> bool {
    let Some(property) = word.strip_prefix("-D") else {
        return false;
    };
    let (name, value) = property.split_once('=').unwrap_or((property, ""));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.#*,!+$".contains(&byte);
    has_word(PROPERTIES, name) && value.bytes().all(is_plain)
}

/// `group:artifact:version:goal`, or the goal of an unknown plugin.
fn is_foreign_goal(word: &str) -> bool {
    let Some((plugin, goal)) = word.split_once(':') else {
        return false;
    };
    !word.starts_with('-') && (goal.contains(':') || !has_word(PLUGINS, plugin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_and_properties_are_told_apart() {
        for plain in [
            "-DskipTests",
            "-DskipTests=true",
            "-Dtest=Parser*#a+b",
            "-Dmaven.test.skip",
        ] {
            assert!(is_plain_property(plain), "{plain}");
        }
        for other in [
            "-Dexec.executable=x",
            "-DargLine=-javaagent:x",
            "-Dtest=../x",
        ] {
            assert!(!is_plain_property(other), "{other}");
        }
        assert!(
            is_foreign_goal("a:b:run")
                && is_foreign_goal("exec:java")
                && !is_foreign_goal("dependency:tree")
        );
    }
}
