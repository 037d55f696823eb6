#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace parapipe {

/// A value in a JSON document that knows where it stands; what is not as asked for is an Error.
class Field {
public:
    Field(const nlohmann::json &value, std::string place) : value_(&value), place_(std::move(place)) {}

    /// The field of that name; an Error if it is missing.
    Field operator[](const std::string &name) const;
    std::optional<Field> find(const std::string &name) const;
    /// Refuses fields of any other name.
    void allow(std::initializer_list<const char *> names) const;

    std::vector<Field> entries() const;
    std::vector<std::pair<std::string, Field>> members() const;
    std::string text() const;
    std::string name() const;
    std::int64_t integer(std::int64_t least, std::int64_t most) const;
    double number() const;

    [[noreturn]] void refuse(const std::string &what) const;

private:
    const nlohmann::json *value_;
    std::string place_;
};

}  // namespace parapipe
